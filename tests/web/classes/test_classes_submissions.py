"""The list of submissions to an assignment: what is in it, what is not, and judging one of them again."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select, update

from judge.packages import survey
from judge.store import Submission
from web.accounts.tables import AuditEntry
from web.classes import submission_views


@pytest.fixture
def listed(school, assignment):
    """Numbers of the submissions that a page of the list shows."""

    def look(query: str = "", visitor=None) -> list[int]:
        page = (visitor or school.teacher).get(f"{assignment}/submissions{query}")
        assert page.status_code == 200
        return [int(n) for n in re.findall(r'<td><a href="[^"]*">(\d+)</a></td>', page.text)]

    return look


def test_the_list_has_the_class_s_work_newest_first_and_nothing_else(
    school, assignment, store, judged, listed
):
    mine = [judged("u2", 40), judged("u3", 200, status="wrong_answer", passed=3), judged("u2", 200)]
    old = judged("u2", 40)
    judged("u2", 30)
    judged("u4", 40)
    judged("u1", 40)
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == old).values(created_at=1_600_000_000.0))
    assert listed() == mine[::-1]
    assert school.ada.get(f"{assignment}/submissions").status_code == 403
    assert school.outsider.get(f"{assignment}/submissions").status_code == 404


def test_it_keeps_to_what_is_asked_for(school, judged, listed):
    one, two = judged("u2", 40), judged("u3", 200, status="wrong_answer", passed=3)
    three = judged("u2", 200, status="wrong_answer", passed=0)
    waits = judged("u3", 40, finished_at=None, current_judgement=None)
    with school_store(school) as session:
        session.execute(update(Submission).where(Submission.id == waits).values(status="queued"))
    assert listed("?learner=2") == [three, one]
    assert listed("?problem=200") == [three, two]
    assert listed("?outcome=wrong_answer&learner=3") == [two]
    assert listed("?outcome=accepted") == [one]
    assert listed("?outcome=waiting") == [waits]
    assert listed("?learner=&problem=&outcome=") == [waits, three, two, one], "as the form sends it"
    assert listed("?learner=99") == []


@pytest.mark.parametrize("query", ["learner=x", "problem=-1", "outcome=great", "before=" + "9" * 30])
def test_what_cannot_be_asked_is_refused(school, assignment, query):
    assert school.teacher.get(f"{assignment}/submissions?{query}").status_code == 400


def test_it_goes_back_page_by_page(school, assignment, judged, listed, monkeypatch):
    numbers = [judged("u2", 40) for _ in range(5)][::-1]
    monkeypatch.setattr(submission_views, "PAGE", 2)
    seen, address = [], "?learner=2"
    while True:
        seen.append(listed(address))
        page = school.teacher.get(f"{assignment}/submissions{address}").text
        older = re.search(r'href="[^"?]*(\?before=[^"]*)">Older', page)
        if older is None:
            break
        address = older[1].replace("&amp;", "&")
        assert "learner=2" in address
    assert seen == [numbers[:2], numbers[2:4], numbers[4:]]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_opens_in_both_languages_and_leads_everywhere(school, assignment, judged, lang):
    number = judged("u2", 40, public_only=True)
    page = school.teacher.get(f"{assignment}/submissions", lang=lang).text
    for href in re.findall(rf'href="({assignment}[^"]*)"', page):
        assert school.teacher.get(href.replace("&amp;", "&"), lang=lang).status_code == 200, href
    assert f"{assignment}/grades/2/40/{number}" in page
    for from_there in (assignment, f"{assignment}/grades", f"{assignment}/grades/2"):
        assert f'href="{assignment}/submissions' in school.teacher.get(from_there, lang=lang).text


def test_late_ones_say_so(school, judged):
    data = {
        "title": "Over",
        "opens": "2020-01-01T00:00",
        "deadline": "2021-01-01T00:00",
        "late_percent": "50",
        "problem": "40",
    }
    path = school.teacher.post(f"{school.path}/assignments/new", data, page=school.path).location
    judged("u2", 40)
    assert ">does not count<" in school.teacher.get(f"{path}/submissions").text
    school.teacher.post(f"{path}/edit", {**data, "late_until": "2099-01-01T00:00"}, page=school.path)
    assert ">late<" in school.teacher.get(f"{path}/submissions").text
    own = {"deadline": "2098-01-01T00:00"}
    school.teacher.post(f"{path}/grades/2/deadline", own, page=school.path)
    page = school.teacher.get(f"{path}/submissions").text
    assert ">late<" not in page
    assert ">does not count<" not in page


def test_one_is_judged_again_by_today_s_version(school, assignment, judged, store):
    number, other = judged("u2", 40), judged("u2", 40)
    work = f"{assignment}/grades/2/40/{number}"
    assert f'action="{work}/again"' in school.teacher.get(work).text
    assert f'action="{work}/again"' in school.teacher.get(f"{assignment}/submissions").text
    back = school.teacher.post(
        f"{work}/again", {"next": f"{assignment}/submissions?learner=2"}, page="/classes"
    )
    assert back.location == f"{assignment}/submissions?learner=2"
    page = school.teacher.get(back.location).text
    assert "1 submission is judged again." in page
    assert ">being judged again<" in page
    with store.read() as session:
        found = session.get_one(Submission, number)
        assert (found.status, found.version) == ("queued", survey().packages[40].version)
        assert session.get_one(Submission, other).status == "accepted"
        said = session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc())).first()
        assert (said.action, said.target, said.detail["count"]) == ("judged_again", f"submission {number}", 1)
    elsewhere = school.teacher.post(f"{work}/again", {"next": "//evil.example"}, page="/classes")
    assert elsewhere.location == work


def test_a_learner_goes_on_seeing_the_verdict_that_counts(school, assignment, judged, store):
    """And is offered nothing that is not theirs to do: a rejudge can be neither watched nor cancelled."""
    number = judged("u2", 40)
    school.teacher.post(f"{assignment}/grades/2/40/{number}/again", {}, page="/classes")
    mine, teacher_s = f"/submissions/{number}", f"{assignment}/grades/2/40/{number}"
    for page in (school.ada.get(mine).text, school.teacher.get(teacher_s).text):
        assert "19 of 19 cases" in page
        assert "This verdict counts until there is a new one." in page
        assert "data-live" not in page
        assert "/cancel" not in page
    assert f"{teacher_s}/again" not in school.teacher.get(teacher_s).text, "it waits already"
    assert ">being judged again<" in school.ada.get("/submissions").text
    with store.write() as session:
        session.execute(update(Submission).values(current_judgement=None))
    page = school.teacher.get(teacher_s).text
    assert "queued" in page
    assert "/cancel" not in page, "it is the learner's to cancel"
    assert "data-live" not in page
    assert "/cancel" in school.ada.get(mine).text


def test_nobody_else_has_it_judged_again_and_nothing_else_is(school, assignment, judged, store):
    mine, foreign, not_set = judged("u2", 40), judged("u4", 40), judged("u2", 30)
    for visitor, code in ((school.ada, 403), (school.outsider, 404)):
        path = f"{assignment}/grades/2/40/{mine}/again"
        assert visitor.post(path, {}, page="/classes").status_code == code
    for rest in (f"4/40/{foreign}", f"2/40/{foreign}", f"2/30/{not_set}", f"2/200/{mine}", f"2/40/{2**70}"):
        path = f"{assignment}/grades/{rest}/again"
        assert school.teacher.post(path, {}, page="/classes").status_code == 404, rest
    with store.read() as session:
        assert set(session.scalars(select(Submission.status))) == {"accepted"}


def school_store(school):
    return school.teacher.client.application.extensions["course"].store.write()
