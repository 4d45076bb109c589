"""Drafts belong to an account: nobody else sees them, and they go with it."""

from __future__ import annotations

from sqlalchemy import select

from web.accounts import people
from web.accounts.tables import Role, User
from web.drafts.keeping import save_draft
from web.drafts.tables import Draft


def test_drafts_go_with_their_account_and_only_those(app, signed_in, person, store):
    signed_in("root", Role.ADMIN)
    ada, eve = person("ada"), person("eve")
    with store.write() as session:
        for user in (ada, eve):
            save_draft(session, user.key, 200, b"mine = 1", 0)
    with app.test_request_context(), store.write() as session:
        people.remove(session, session.get_one(User, ada.id), "u1")
    with store.read() as session:
        assert session.scalars(select(Draft.user)).all() == [eve.key]


def test_each_sees_their_own_draft(signed_in, store):
    signed_in("root", Role.ADMIN)
    ada, eve = signed_in("ada"), signed_in("eve")
    with store.write() as session:
        key = session.scalars(select(User).where(User.login == "ada")).one().key
        save_draft(session, key, 200, b"adas = 1", 0)
    assert "adas = 1" in ada.get("/problems/200").text
    assert "adas = 1" not in eve.get("/problems/200").text
