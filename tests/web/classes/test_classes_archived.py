"""An archived class is for reading: every view that changes something refuses, those that are written later too."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

REOPENS = "classes.reopen"
NO_CLASS = "classes.new"  # makes one
SITE_S_OWN = ("alembic_version", "sqlite_sequence")


def changing_rules(app):
    return [
        rule
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("classes.") and "POST" in rule.methods and rule.endpoint != NO_CLASS
    ]


def content(store):
    with store.read() as session:
        names = session.scalars(text("SELECT name FROM sqlite_schema WHERE type = 'table'")).all()
        return {
            name: session.execute(text(f'SELECT * FROM "{name}"')).all()
            for name in names
            if name not in SITE_S_OWN
        }


@pytest.fixture
def archived(school, assignment, judged):
    judged("u2", 40)
    school.teacher.post(f"{school.path}/announcements", {"text": "Hello"}, page=school.path)
    school.teacher.post(f"{school.path}/links", {"days": "3", "most_uses": "9"}, page=f"{school.path}/people")
    assert school.teacher.post(f"{school.path}/archive", {}, page=school.path).status_code == 303
    return school


def test_whatever_changes_a_class_refuses_when_it_is_archived(app, archived, store):
    rules = changing_rules(app)
    assert len(rules) > 12
    token = archived.teacher.csrf(archived.path)
    before = content(store)
    data = {
        "csrf_token": token,
        "text": "x",
        "login": "olaf",
        "part": "learner",
        "rows": "n1,New",
        "days": "3",
    }
    for rule in rules:
        if rule.endpoint == REOPENS:
            continue
        numbers = {
            name: {"number": archived.number, "user": 2, "problem": 40}.get(name, 1)
            for name in rule.arguments
        }
        path = app.url_map.bind("").build(rule.endpoint, numbers, method="POST")
        answer = archived.teacher.client.post(
            path,
            base_url="http://course.example.edu:8000",
            data=data,
            headers={"Origin": "http://course.example.edu:8000", "Accept-Language": "en"},
        )
        assert answer.status_code == 409, rule
        assert "The class is archived" in answer.text, rule
        assert "Reopen it first" in answer.text, rule
    assert content(store) == before


def test_its_pages_offer_nothing_that_is_refused(app, archived, assignment):
    """Every form on them leads out of the class, or opens it again."""
    work = f"{assignment}/grades"
    pages = [archived.path, f"{archived.path}/people", assignment, work]
    pages += [f"{work}/2", f"{work}/2/40", f"{work}/2/40/1", f"{assignment}/submissions"]
    for visitor in (archived.teacher, archived.ada):
        for page in pages[: None if visitor is archived.teacher else 1]:
            answer = visitor.get(page)
            assert answer.status_code == 200
            found = {
                a
                for a in re.findall(rf'action="({archived.path}[^"]*)"', answer.text)
                if not a.endswith("/submissions")
            }
            assert found <= {f"{archived.path}/reopen"}, page
    assert f'action="{archived.path}/reopen"' in archived.teacher.get(archived.path).text


def test_what_is_submitted_afterwards_is_not_handed_in(archived, assignment, judged, store):
    judged("u2", 200)
    assert "10 / 30" in archived.teacher.get(f"{assignment}/grades").text
    shown = archived.teacher.get(f"{assignment}/submissions").text
    assert "/grades/2/40/1" in shown
    assert "/grades/2/200/2" not in shown
    for path, code in (("40/1", 200), ("200/2", 404)):
        assert archived.teacher.get(f"{assignment}/grades/2/{path}").status_code == code
    archived.teacher.post(f"{archived.path}/reopen", {}, page=archived.path)
    assert "30 / 30" in archived.teacher.get(f"{assignment}/grades").text


def test_a_learner_of_it_is_told_whom_to_ask(archived):
    answer = archived.ada.post(f"{archived.path}/leave", {}, page="/classes")
    assert answer.status_code == 409
    assert "Ask its teacher" in answer.text


def test_taken_up_again_it_changes(archived):
    archived.teacher.post(f"{archived.path}/reopen", {}, page=archived.path)
    said = archived.teacher.post(f"{archived.path}/announcements", {"text": "Back"}, page=archived.path)
    assert said.status_code == 303
