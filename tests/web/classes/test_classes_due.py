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
    assert said.status_code == 403
