"""A learner's course page names the assignments that still count."""

from __future__ import annotations


def test_the_course_page_leads_to_what_is_due(school, assignment, judged):
    judged("u2", 40)
    page = school.ada.get("/").text
    assert f'href="{assignment}"' in page
    assert "deadline 2099-01-01 23:59 (Asia/Shanghai) · 1 of 2 solved" in page
    assert "0 of 2 solved" in school.ben.get("/").text
    for other in (school.teacher, school.outsider):
        assert f'href="{assignment}"' not in other.get("/").text


def test_an_archived_class_has_nothing_due_and_announces_nothing(school, assignment):
    school.teacher.post(f"{school.path}/archive", {}, page=school.path)
    assert f'href="{assignment}"' not in school.ada.get("/").text
    assert "<textarea" not in school.teacher.get(school.path).text
    said = school.teacher.post(f"{school.path}/announcements", {"text": "Hello"}, page="/classes/new")
    assert said.status_code == 409


def test_a_problem_says_which_assignment_it_belongs_to(school, judged):
    data = {
        "title": "Three tries",
        "opens": "2020-01-01T00:00",
        "deadline": "2099-01-01T23:59",
        "late_percent": "0",
        "attempts": "3",
        "problem": "40",
    }
    path = school.teacher.post(f"{school.path}/assignments/new", data, page=school.path).location
    judged("u2", 40, status="wrong_answer", passed=3)
    page = school.ada.get("/problems/40").text
    assert f'href="{path}"' in page
    assert "deadline 2099-01-01 23:59 (Asia/Shanghai) · 1 of 3 submissions that count" in page
    assert f'href="{path}"' not in school.ada.get("/problems/41").text
    assert f'href="{path}"' not in school.outsider.get("/problems/40").text
