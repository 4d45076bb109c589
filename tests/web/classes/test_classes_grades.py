"""What an assignment counts: the rules one by one, then the pages and the CSV."""

from __future__ import annotations

import csv
import io

import pytest
from sqlalchemy import update

from judge.core.status import Status
from judge.store import Submission
from web.classes.extensions import times
from web.classes.grades import Attempt, Cell, grade
from web.classes.tables import Assignment
from web.classes.times import TimeRefused, shown, to_seconds


def made(**more: object) -> Assignment:
    fields = {
        "opens_at": 1000.0,
        "deadline_at": 2000.0,
        "late_until": None,
        "late_percent": 50,
        "attempts": None,
        "partial": False,
        **more,
    }
    return Assignment(title="x", class_id=1, **fields)


def graded(assignment: Assignment, points: int, joined_at: float, attempts: list[Attempt]) -> Cell:
    return grade(assignment, times(assignment), points, joined_at, attempts)


def tried(number: int, at: float, status: str = "accepted", passed: int = 10) -> Attempt:
    return Attempt(number, "u1", 40, at, Status(status), passed, 10)


@pytest.mark.parametrize(
    ("rules", "attempts", "points"),
    [
        ({}, [], 0),
        ({}, [tried(1, 1500)], 20),
        ({}, [tried(1, 999)], 0),
        ({}, [tried(1, 1000)], 20),
        ({}, [tried(1, 2000)], 20),
        ({}, [tried(1, 2059.9)], 20),
        ({}, [tried(1, 2060)], 0),
        ({"late_until": 3000.0}, [tried(1, 2060)], 10),
        ({"late_until": 3000.0}, [tried(1, 3059.9)], 10),
        ({"late_until": 3000.0}, [tried(1, 3060)], 0),
        ({"late_until": 3000.0, "late_percent": 0}, [tried(1, 2500)], 0),
        ({"late_until": 3000.0}, [tried(1, 1500, "wrong_answer", 9), tried(2, 2500)], 10),
        ({}, [tried(1, 1500, "wrong_answer", 9)], 0),
        ({"partial": True}, [tried(1, 1500, "wrong_answer", 9)], 18),
        ({"partial": True, "late_until": 3000.0}, [tried(1, 1500, "wrong_answer", 6), tried(2, 2500)], 12),
        ({"attempts": 1}, [tried(1, 1500, "wrong_answer", 9), tried(2, 1600)], 0),
        ({"attempts": 1}, [tried(1, 1500, "system_error", 0), tried(2, 1600)], 20),
        ({"attempts": 1}, [tried(1, 900, "wrong_answer", 0), tried(2, 1600)], 20),
        ({}, [tried(2, 1600, "wrong_answer"), tried(1, 1500)], 20),
        ({}, [tried(1, 1500, "running", 0)], 0),
    ],
)
def test_points(rules, attempts, points):
    assert graded(made(**rules), 20, 0.0, attempts).points == points


def test_what_was_before_joining_does_not_count():
    assert graded(made(), 20, 1600.0, [tried(1, 1500)]).points == 0
    assert graded(made(), 20, 1500.0, [tried(1, 1500)]).points == 20


def test_what_counts_is_the_earliest_of_the_best():
    cell = graded(made(), 20, 0.0, [tried(1, 1500, "wrong_answer", 3), tried(2, 1600), tried(3, 1700)])
    assert (cell.best.id, cell.tries, cell.late, cell.solved) == (2, 3, False, True)
    cell = graded(made(), 20, 0.0, [tried(1, 1500, "wrong_answer", 3), tried(2, 1600, "wrong_answer", 5)])
    assert (cell.best.id, cell.solved) == (2, False)


def test_local_times_of_the_class(app):
    with app.test_request_context(headers={"Accept-Language": "en"}):
        at = to_seconds("2026-12-01T23:59", "Asia/Shanghai")
        assert to_seconds("2026-12-1 23:59", "Asia/Shanghai") == at, "typed without zeros"
        assert at == 1_796_140_740.0
        assert shown(at, "Asia/Shanghai") == "2026-12-01 23:59 (Asia/Shanghai)"
        assert to_seconds("2026-10-25T02:30", "Europe/Berlin") == 1_792_891_800.0 + 3600 - 3600, (
            "the second 2:30"
        )
        for wrong in (
            "2026-03-29T02:30",
            "tomorrow",
            "2026-13-01T00:00",
            "",
            "1999-01-01T00:00",
            "9999-99-99T99:99",
        ):
            with pytest.raises(TimeRefused):
                to_seconds(wrong, "Europe/Berlin")


def test_the_grade_book_and_its_csv(school, assignment, judged):
    judged("u2", 40)
    judged("u2", 200, status="wrong_answer", passed=7)
    judged("u3", 40, status="wrong_answer", passed=3)
    page = school.teacher.get(f"{assignment}/grades").text
    assert "10 / 30" in page
    assert "7 / 19" in page
    rows = list(
        csv.reader(io.StringIO(school.teacher.get(f"{assignment}/grades.csv").data.decode("utf-8-sig")))
    )
    assert rows[0][:4] == ["login", "name", "points", "40 (10)"]
    assert [r[:4] for r in rows[1:]] == [["ada", "Ada", "10.0", "10.0"], ["ben", "Ben", "0.0", "0.0"]]
    assert {r[-1] for r in rows} == {"deadline", "2099-01-01 23:59 (Asia/Shanghai)"}
    assert '<td class="n">30</td><td colspan="2">10</td>' in school.ada.get(assignment).text
    assert "1 / 2" in school.ada.get(school.path).text


def test_a_rejudge_moves_no_deadline(school, assignment, store, judged):
    from sqlalchemy import select

    from web.accounts.tables import User
    from web.classes import grades
    from web.classes.tables import AssignedProblem, Member

    number = judged("u2", 40)
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == number).values(finished_at=9e9))
    with store.read() as session:
        found = session.scalars(select(Assignment)).one()
        problems = session.scalars(select(AssignedProblem)).all()
        member, user = session.get(Member, (school.number, 2)), session.get(User, 2)
        (line,) = grades.book(session, found, problems, [(member, user)])
    assert line.cells[40].solved
    assert not line.cells[40].late


def test_an_assignment_is_seen_from_its_opening_on(school):
    data = {
        "title": "Later",
        "opens": "2098-01-01T00:00",
        "deadline": "2099-01-01T00:00",
        "late_percent": "0",
        "problem": "40",
    }
    path = school.teacher.post(f"{school.path}/assignments/new", data, page=school.path).location
    assert school.teacher.get(path).status_code == 200
    assert school.ada.get(path).status_code == 404
    assert "Later" not in school.ada.get(school.path).text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"deadline": "2019-01-01T00:00"}, "must be after the opening"),
        ({"late_until": "2020-06-01T00:00"}, "must be after the deadline"),
        ({"deadline": "soon"}, "2026-12-01 23:59"),
        ({"late_percent": "101"}, "From 0 to 100."),
        ({"late_percent": "many"}, ""),
        ({"attempts": "0"}, "From 1 to 1000"),
        ({"title": ""}, "This field is empty"),
        ({"title": "x" * 81}, "At most 80 characters."),
        ({"problem": []}, "Choose at least one problem."),
        ({"problem": "99999"}, "There is no problem 99999."),
        ({"problem": "-1"}, "There is no problem -1."),
        ({"problem": "²"}, "There is no problem ²."),
        ({"points-40": "lots"}, "a whole number"),
        ({"points-40": "1e3"}, "a whole number"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_refused_with_what_was_typed(school, change, told):
    data = {
        "title": "Typed title",
        "opens": "2020-01-01T00:00",
        "deadline": "2099-01-01T23:59",
        "late_percent": "50",
        "problem": "40",
        **change,
    }
    answer = school.teacher.post(f"{school.path}/assignments/new", data, page=school.path)
    assert answer.status_code == 422
    assert told in answer.text
    assert "Typed title" in answer.text or "title" in change
    assert "/assignments/1" not in school.teacher.get(school.path).text


def test_the_form_as_a_browser_sends_it(school):
    """Every problem has a field for its points, chosen or not."""
    import re

    page = school.teacher.get(f"{school.path}/assignments/new").text
    sent = dict(re.findall(r'name="(points-\d+)" min="0" max="1000" value="(\d+)"', page))
    assert len(sent) > 90
    data = {
        "title": "All",
        "opens": "2020-01-01T00:00",
        "deadline": "2099-01-01T00:00",
        "late_until": "",
        "late_percent": "50",
        "attempts": "",
        "references_at": "",
        **sent,
        "problem": [n[7:] for n in sent],
    }
    made = school.teacher.post(f"{school.path}/assignments/new", data, page=school.path)
    assert made.status_code == 303, made.text
    assert f"/ {len(sent)}" in school.ada.get(school.path).text


def test_changing_and_deleting(school, assignment, judged):
    judged("u2", 40)
    data = {
        "title": "Week 1b",
        "opens": "2020-01-01T00:00",
        "deadline": "2021-01-01T00:00",
        "late_until": "2099-01-01T00:00",
        "late_percent": "30",
        "problem": "40",
        "points-40": "10",
    }
    assert school.teacher.post(f"{assignment}/edit", data, page=school.path).status_code == 303
    assert "3 / 10" in school.teacher.get(f"{assignment}/grades").text
    assert "Week 1b" in school.teacher.get(f"{assignment}/edit").text
    assert school.teacher.post(f"{assignment}/delete", {}, page=school.path).status_code == 303
    assert school.teacher.get(assignment).status_code == 404


def test_what_the_class_gets_wrong(school, assignment, judged):
    named = [{"kind": "full", "names": ["rounds_up"]}]
    judged("u2", 40, status="wrong_answer", passed=3, diagnosis=named)
    judged("u2", 40)
    judged("u3", 40, status="wrong_answer", passed=3, diagnosis=named)
    page = school.teacher.get(f"{assignment}/mistakes").text
    assert "<strong>2</strong> <code>rounds_up</code>" in page
    assert "1 solved it since" in page


def test_an_archived_class_sets_nothing(school, assignment):
    school.teacher.post(f"{school.path}/archive", {}, page=school.path)
    assert school.teacher.get(f"{school.path}/assignments/new").status_code == 409
    assert school.ada.get(assignment).status_code == 200


def test_a_teacher_has_all_that_counts_judged_again(school, assignment, judged, store):
    from sqlalchemy import select

    counted = [judged("u2", 40), judged("u3", 200), judged("u2", 40, status="wrong_answer", passed=1)]
    judged("u2", 30)
    judged("u4", 40)
    old = judged("u2", 40)
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == old).values(created_at=1_600_000_000.0))
    assert school.ada.post(f"{assignment}/again", {}, page=school.path).status_code == 403
    assert school.outsider.post(f"{assignment}/again", {}, page="/classes").status_code == 404
    assert school.teacher.post(f"{assignment}/again", {}, page=school.path).status_code == 303
    with store.read() as session:
        queued = session.scalars(select(Submission.id).where(Submission.status == "queued")).all()
    assert sorted(queued) == sorted(counted)
    assert "10 / 30" in school.teacher.get(f"{assignment}/grades").text, "what counted goes on counting"
