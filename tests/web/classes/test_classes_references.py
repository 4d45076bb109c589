"""References that a class hides until a date."""

from __future__ import annotations

import pytest


def hide(school, until: str, problem: str = "40") -> str:
    data = {
        "title": "Exam",
        "opens": "2020-01-01T00:00",
        "deadline": "2099-01-01T00:00",
        "late_percent": "0",
        "problem": problem,
        "references_at": until,
    }
    return school.teacher.post(f"{school.path}/assignments/new", data, page=school.path).location


def test_nobody_of_the_class_sees_it_before_not_even_solved(school, judged, signed_in):
    judged("u2", 40)
    assert school.ada.get("/problems/40/solution").status_code == 200
    path = hide(school, "2098-06-01T08:00")
    answer = school.ada.get("/problems/40/solution")
    assert answer.status_code == 404
    assert "2098-06-01 00:00 UTC" in answer.text
    assert "You have solved this problem" in answer.text
    assert "Solve it first" in school.ben.get("/problems/40/solution").text
    assert "hidden until 2098-06-01 08:00 (Asia/Shanghai)" in school.ada.get(path).text
    other = signed_in("zoe")
    judged("u5", 40)
    assert other.get("/problems/40/solution").status_code == 200, "somebody of no class"
    assert school.teacher.get("/problems/40/solution").status_code == 200, "a teacher needs it to teach"


@pytest.mark.parametrize(
    ("until", "problem"), [("2021-01-01T00:00", "40"), ("2098-01-01T00:00", "41"), ("", "40")]
)
def test_what_is_not_hidden_is_seen_by_those_who_solved_it(school, judged, until, problem):
    judged("u2", 40)
    hide(school, until, problem)
    assert school.ada.get("/problems/40/solution").status_code == 200
    assert school.ben.get("/problems/40/solution").status_code == 404


def test_a_class_that_is_over_hides_nothing(school, judged):
    judged("u2", 40)
    hide(school, "2098-06-01T08:00")
    school.teacher.post(f"{school.path}/archive", {}, page=school.path)
    assert school.ada.get("/problems/40/solution").status_code == 200
