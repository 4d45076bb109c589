"""From submitting to reading the verdict: without JavaScript, by stream, and by polling; and what never
shows."""

from __future__ import annotations

import base64
import html
import json

import pytest
from sqlalchemy import select

from judge.core.status import Status
from judge.core.verdict import Verdict
from judge.store import Submission

CASE = {"name": "hidden", "group": "hidden", "status": "accepted", "time_ms": 0, "message": None}


def test_without_javascript(app, browser, judge_all):
    package = app.extensions["course"].packages[200]
    number = browser.submit(package.solution)
    page = browser.get(f"/submissions/{number}").text
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "queued" in page
    judge_all()
    page = browser.get(f"/submissions/{number}").text
    assert "http-equiv" not in page
    assert "accepted" in page
    assert "20 of 20 cases" in page
    assert 'class="state done"' in browser.get("/").text
    history = browser.get("/problems/200").text
    assert f'href="/submissions/{number}"' in history


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_wrong_answer_says_why_and_shows_a_case(app, browser, judge_all, lang):
    package = app.extensions["course"].packages[200]
    mistake = package.wrong["qo_indptr_from_seq_len"]
    number = browser.submit(mistake.source)
    judge_all()
    page = browser.get(f"/submissions/{number}", lang).text
    assert mistake.diagnosis[lang] in page
    assert f'href="/chapters/17#{mistake.section.partition("#")[2]}"' in page
    assert 'data-picture="page_table"' in page
    assert "<mark>" in page


def named(mistake):
    """What a verdict has of a known mistake."""
    return {
        "kind": "mistake",
        "code": "mistake",
        "params": {"agreed": 3, "failed": 3},
        "names": [mistake.name],
        "fields": [],
        "text": {"zh": mistake.diagnosis.zh, "en": mistake.diagnosis.en},
        "section": mistake.section,
        "apart": None,
    }


def test_every_known_mistake_is_told_with_its_section(app, browser):
    services = app.extensions["course"]
    told = 0
    for package in services.packages.values():
        number = services.queue.submit(
            user="local", problem=package.id, version=package.version, source=b"x = 1"
        )
        verdict = Verdict(
            problem=package.id,
            version=package.version,
            status=Status.WRONG_ANSWER,
            passed=0,
            total=3,
            time_ms=1,
            tier="strong",
            kernels="fake",
            versions={},
            cases=[],
            diagnosis=[named(mistake) for mistake in package.wrong.values()],
        )
        assert services.queue.finish(services.queue.claim("test"), verdict.to_json())
        for lang in ("zh", "en"):
            findings = browser.get(f"/submissions/{number}/fragment", lang).text.split('class="finding')[1:]
            for mistake, finding in zip(package.wrong.values(), findings, strict=True):
                chapter, _, anchor = mistake.section.partition("#")
                place = f"/chapters/{int(chapter[2:])}#{anchor}" if chapter != "f" else "/problems"
                assert mistake.diagnosis[lang] in html.unescape(finding), mistake.name
                assert f'href="{place}"' in finding, mistake.name
                told += 1
    assert told > 1000


def test_a_run_is_marked_and_solves_nothing(app, browser, judge_all):
    number = browser.submit(app.extensions["course"].packages[200].solution, public_only="1")
    [verdict] = judge_all()
    assert verdict["total"] == len(app.extensions["course"].packages[200].public)
    assert "public only" in browser.get(f"/submissions/{number}").text
    assert 'class="state done"' not in browser.get("/").text


def test_hostile_text_is_shown_as_text(browser, judge_all):
    number = browser.submit("</pre><script>alert(1)</script><img src=x onerror=alert(1)>")
    judge_all()
    for page in (
        browser.get(f"/submissions/{number}").text,
        browser.get(f"/problems/200?from={number}").text,
    ):
        assert "<script>alert" not in page
        assert "<img" not in page


def events(answer) -> list[tuple[str, dict]]:
    found = []
    for block in answer.text.split("\n\n"):
        lines = dict(
            line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":")
        )
        if "event" in lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_the_stream_tells_cases_and_ends_with_the_verdict(app, browser, judge_all):
    number = browser.submit("x = 1")
    queue = app.extensions["course"].queue
    claim = queue.claim("w")
    queue.started(claim, 3)
    queue.progress(
        claim, 1, [CASE, CASE | {"status": "wrong_answer", "message": {"code": "value", "params": {}}}]
    )
    answer = browser.get(f"/submissions/{number}/events", buffered=False)
    stream = answer.iter_encoded()
    text = ""
    while "2 of" not in text and text.count("event: case") < 2:
        text += next(stream).decode()
    assert '"total": 3' in text
    assert "id: 1.2" in text
    queue.release(claim)
    judge_all()
    text += b"".join(stream).decode()
    assert text.rstrip().endswith("event: end\ndata: {}")
    answer.close()


def test_a_stream_that_reconnects_does_not_repeat_cases(app, browser):
    number = browser.submit("x = 1")
    queue = app.extensions["course"].queue
    claim = queue.claim("w")
    queue.progress(claim, 1, [CASE, CASE])
    state = browser.get(f"/submissions/{number}/state?after=1.1").json
    assert [c["seq"] for c in state["cases"]] == [2]
    again = browser.get(f"/submissions/{number}/state?after=0.5").json
    assert [c["seq"] for c in again["cases"]] == [1, 2]
    assert browser.get(f"/submissions/{number}/state?after=nonsense").json["status"] == "running"


def test_a_finished_submission_streams_its_end_at_once(browser, judge_all):
    number = browser.submit("x = 1")
    judge_all()
    names = [name for name, _ in events(browser.get(f"/submissions/{number}/events"))]
    assert names == ["state", "end"]
    assert browser.get(f"/submissions/{number}/state").json["final"] is True


def test_streams_of_a_user_are_capped_and_given_back(browser):
    number = browser.submit("x = 1")
    answers = [browser.get(f"/submissions/{number}/events", buffered=False) for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 200]
    assert browser.get(f"/submissions/{number}/events").status_code == 429
    assert browser.get(f"/submissions/{number}/state").status_code == 200
    answers[0].close()
    freed = browser.get(f"/submissions/{number}/events", buffered=False)
    assert freed.status_code == 200
    for answer in (*answers[1:], freed):
        answer.close()


def test_no_response_holds_the_seed(app, browser, judge_all):
    number = browser.submit(app.extensions["course"].packages[200].wrong["int64"].source)
    waiting = [browser.get(f"/submissions/{number}{p}").data for p in ("", "/fragment", "/state")]
    judge_all()
    done = [browser.get(f"/submissions/{number}{p}").data for p in ("", "/fragment", "/state", "/events")]
    pages = [browser.get(p).data for p in ("/", "/problems/200", "/submissions", "/problems/200/submissions")]
    with app.extensions["course"].store.read() as session:
        seed = session.scalars(select(Submission.seed)).one()
    forms = [
        seed,
        seed.hex().encode(),
        seed.hex().upper().encode(),
        base64.b64encode(seed)[:-2],
        repr(seed).encode(),
    ]
    forms += [str(int.from_bytes(seed, order)).encode() for order in ("big", "little")]
    for body in (*waiting, *done, *pages):
        assert not any(form in body for form in forms)


def test_a_submission_given_up_says_so(app, browser):
    from sqlalchemy import update

    from judge.store.clock import now

    number = browser.submit("x = 1")
    services = app.extensions["course"]
    for _ in range(3):
        services.queue.started(services.queue.claim("w"), 20)
        with services.store.write() as session:
            session.execute(update(Submission).values(lease_until=now() - 1))
        services.queue.recover()
    assert "3 次" in browser.get(f"/submissions/{number}", "zh").text
    assert "lost 3 times" in browser.get(f"/submissions/{number}", "en").text


def test_a_verdict_of_a_problem_that_is_gone_still_shows(app, browser, judge_all):
    number = browser.submit(app.extensions["course"].packages[200].wrong["int64"].source)
    judge_all()
    app.extensions["course"].packages.pop(200)
    assert browser.get(f"/submissions/{number}").status_code == 200
    assert browser.get("/submissions").status_code == 200
