"""Problems, submitting, following and cancelling by the API."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "judge" / "verdict.schema.json").read_text())
SOLUTION = (ROOT / "problems" / "200_flashinfer_metadata" / "solution.py").read_text()


def test_problems_and_how_far_i_am(program, judge_all):
    anna, otto = program("anna"), program("otto")
    assert {p["standing"] for p in anna.get("/problems").json["problems"]} == {"none"}
    anna.submit("def nothing(): ...")
    judge_all()
    mine = {p["id"]: p["standing"] for p in anna.get("/problems").json["problems"]}
    assert mine[200] == "tried"
    assert mine[201] == "none"
    assert otto.get("/problems/200").json["standing"] == "none"


def test_a_problem_tells_what_its_page_tells_and_no_more(app, program):
    package = app.extensions["course"].packages[200]
    answer = program("anna").get("/problems/200")
    found = answer.json
    assert found["statement"] == {"zh": package.statement("zh"), "en": package.statement("en")}
    assert found["starter"] == package.starter
    assert found["version"] == package.version
    assert [c["name"] for c in found["cases"]] == [c.name for c in package.public]
    assert found["limits"]["source_kb"] == package.limits.source_kb
    for secret in (package.solution, *(w.source for w in package.wrong.values())):
        assert json.dumps(secret)[1:-1] not in answer.text


def test_a_submission_from_the_queue_to_its_verdict(app, program, judge_all):
    anna = program("anna")
    answer = anna.post("/submissions", json={"problem": 200, "source": SOLUTION})
    number = answer.json["id"]
    assert answer.json == {"id": number, "status": "queued"}
    assert answer.headers["Location"] == f"/api/v1/submissions/{number}"
    second = anna.submit(SOLUTION, public_only=True)
    waiting = anna.get(f"/submissions/{second}").json
    assert (waiting["status"], waiting["ahead"], waiting["final"], waiting["verdict"]) == (
        "queued",
        1,
        False,
        None,
    )
    full, public = judge_all()
    found = anna.get(f"/submissions/{number}").json
    assert found["verdict"] == json.loads(json.dumps(full))
    jsonschema.validate(found["verdict"], SCHEMA)
    assert (found["status"], found["final"], found["passed"]) == ("accepted", True, full["passed"])
    assert anna.get(f"/submissions/{second}").json["verdict"]["total"] == public["total"] < full["total"]
    assert "seed" not in anna.get(f"/submissions/{number}").text


def test_progress_is_seen_while_it_runs(app, program):
    anna = program("anna")
    number = anna.submit(SOLUTION)
    queue = app.extensions["course"].queue
    claim = queue.claim("test")
    case = {"name": "hidden", "group": "hidden", "status": "accepted", "time_ms": 10, "message": None}
    queue.started(claim, 20)
    queue.progress(claim, 1, [case])
    found = anna.get(f"/submissions/{number}").json
    assert (found["status"], found["total"], found["cases"]) == ("running", 20, [case])


def test_cancelling(program):
    anna = program("anna")
    number = anna.submit(SOLUTION)
    assert anna.post(f"/submissions/{number}/cancel").json == {"id": number, "status": "cancelled"}
    late = anna.post(f"/submissions/{number}/cancel")
    assert late.status_code == 409
    assert anna.get(f"/submissions/{number}").json["status"] == "cancelled"


def test_pages_of_my_submissions(program):
    anna, otto = program("anna"), program("otto")
    numbers = []
    for n in range(5):
        numbers.append(anna.submit(f"x = {n}"))
        otto.submit("y = 1")
    seen, before = [], ""
    while True:
        page = anna.get(f"/submissions?limit=2{before}").json
        seen += [s["id"] for s in page["submissions"]]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert seen == numbers[::-1]


@pytest.mark.parametrize("text", ["", "é\r\n\N{SNOWMAN}", "\0", "\ufeffx = 1"])
def test_the_source_arrives_as_its_utf8(app, store, program, text):
    from judge.store import Submission

    number = program("anna").submit(text)
    with store.read() as session:
        assert session.get_one(Submission, number).source == text.encode()


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ('{"problem": 200, "source": "\\ud800"}', 422, "source"),
        ('{"problem": 200}', 422, "source"),
        ('{"problem": "200", "source": ""}', 422, "problem"),
        ('{"problem": true, "source": ""}', 422, "problem"),
        ('{"problem": 200, "source": "", "user": "u1"}', 422, "user"),
        ('{"problem": 200, "source": "", "public_only": 1}', 422, "public_only"),
        ('{"problem": 200.5, "source": ""}', 422, "problem"),
        ('{"problem": Infinity, "source": ""}', 422, "problem"),
        (f'{{"problem": {2**63}, "source": ""}}', 422, "problem"),
        ('{"problem": 9, "source": ""}', 404, None),
        (json.dumps({"problem": 200, "source": "é" * 33_000}), 413, None),
        ("x" * 5_000_000, 413, None),
        ("[" * 100_000, 400, None),
        ('"{}"', 400, None),
        ("", 400, None),
        (b"\xff", 400, None),
        ('{"problem": 200, "source": ""}'.encode("utf-16"), 400, None),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_kept(program, body, code, path):
    anna = program("anna")
    answer = anna.post("/submissions", data=body, content_type="application/json")
    assert answer.status_code == code, answer.text
    assert answer.json["error"]
    assert answer.json["advice"]
    assert [f["path"] for f in answer.json["fields"]] == ([path] if path else [])
    assert anna.get("/submissions").json["submissions"] == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_is_no_json_is_415(program, kind):
    answer = program("anna").post("/submissions", data="problem=200&source=x", content_type=kind)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/", 404),
        ("DELETE", "/me", 405),
        ("GET", f"/submissions/{2**63}", 422),
    ],
)
def test_addresses_that_are_none(program, method, path, code):
    answer = program("anna").ask(method, path)
    assert answer.status_code == code
    assert answer.json["error"]
    assert code != 405 or answer.headers["Allow"]


def test_too_often_is_429_with_a_time_to_wait(program):
    anna, otto = program("anna"), program("otto")
    codes = []
    for _ in range(45):
        answer = anna.post("/submissions", json={"problem": 200, "source": "x"})
        codes.append(answer.status_code)
        if answer.status_code == 201:
            anna.post(f"/submissions/{answer.json['id']}/cancel")
    assert codes == [201] * 40 + [429] * 5
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert otto.post("/submissions", json={"problem": 200, "source": "x"}).status_code == 201


def test_too_many_waiting_is_429(program):
    anna = program("anna")
    for _ in range(20):
        anna.submit("x = 1")
    answer = anna.post("/submissions", json={"problem": 200, "source": "x"})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


def test_errors_come_in_the_readers_language(program):
    anna = program("anna")
    assert anna.get("/submissions/1", lang="zh").json["error"] == "没有这个东西，或者它不属于你。"
    assert anna.post("/submissions", lang="zh", json={"problem": 200}).json["fields"][0]["message"] == "缺失"
