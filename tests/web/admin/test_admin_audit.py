"""The audit log in words: everything that is noted anywhere has some, in both languages, and real entries read well."""

from __future__ import annotations

import re

import pytest
from flask_babel import force_locale
from sqlalchemy import event, select

from web.accounts import people
from web.accounts.tables import AuditEntry, Event, Role, User
from web.admin.audit import event_text, target_text, told


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_event_has_words(app, lang):
    with app.test_request_context(), force_locale("zh_Hans_CN" if lang == "zh" else "en"):
        texts = {e: event_text(e) for e in Event}
    assert [e for e, text in texts.items() if text == e or "_" in text] == []
    assert len(set(texts.values())) == len(Event), "no two read the same"
    if lang == "zh":
        assert all(re.search(r"[\u4e00-\u9fff]", text) for text in texts.values())


def test_what_this_version_does_not_know_stays_what_it_is(app):
    with app.test_request_context():
        assert event_text("of_tomorrow") == "of_tomorrow"
        assert target_text("planet 9") == "planet 9"
        entry = AuditEntry(actor="nobody", action="x", target="planet 9", detail={"moons": 0})
        app.extensions["course"]
        with app.extensions["course"].store.read() as session:
            (line,) = told(session, [entry])
    assert (line.who, line.details) == ("nobody", [("moons", 0)])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_people_did_is_read_without_a_code(root, signed_in, store, judged, lang):
    """A day of a site, by its pages; then the log has no name that only a program knows."""
    tess = signed_in("tess", Role.TEACHER)
    signed_in("ada")
    page = "/classes/new"
    path = tess.post(page, {"name": "C", "time_zone": "UTC"}, page=page).location
    week = {"title": "W", "opens": "2020-01-01T00:00", "deadline": "2021-01-01T00:00", "late_percent": "0"}
    tess.post(f"{path}/people/add", {"login": "ada", "part": "learner"}, page=path)
    work = tess.post(f"{path}/assignments/new", {**week, "problem": "40"}, page=path).location
    tess.post(f"{work}/grades/3/deadline", {"deadline": "2099-01-01T00:00"}, page=path)
    tess.post(f"{path}/links", {"days": "3", "most_uses": "9"}, page=path)
    tess.post(f"{path}/people/3/remove", {}, page=path)
    judged("u3", 40)
    root.post("/admin/problems/40/again", {}, page="/admin")
    root.post("/admin/accounts/3/role", {"role": "teacher"}, page="/admin")
    root.post("/admin/accounts/3/delete", {}, page="/admin")
    text = root.get("/admin/audit", lang=lang).text
    table = text[text.index("<tbody>") : text.index("</tbody>")]
    cells = re.sub(r'href="[^"]*"|datetime="[^"]*"', "", table)
    with store.read() as session:
        actions = set(session.scalars(select(AuditEntry.action)))
    assert len(actions) >= 9
    assert not re.search(r"\w_\w|\bu\d+\b|=|\bNone\b", re.sub(r"<[^>]*>", " ", cells))
    if lang == "en":
        assert "Tess" in table
        assert "account 3, deleted" in table
        assert "before learner" in table
        assert "submissions 1" in table
    else:
        assert not re.search(r">\s*[a-z]+ [a-z]+\b", cells), "nothing is left in English"


def test_a_page_reads_the_accounts_that_it_names_and_no_others(root, store, person):
    for i in range(30):
        person(f"p{i}")
    with store.write() as session:
        people.note(session, "u5", Event.LEFT, "class 1")
    rows = []
    listen = lambda target, context: rows.append(target)  # noqa: E731
    event.listen(User, "load", listen)
    try:
        page = root.get("/admin/audit").text
    finally:
        event.remove(User, "load", listen)
    assert "P3" in page
    assert len(rows) <= 2, "who asks, and nobody by the way"
