"""Tokens: made once, shown once, ended; and that nothing else opens the API."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select, update

from tests.web.accounts.conftest import PASSWORD, TOKEN, Visitor
from tests.web.api.conftest import Program
from web.accounts import people
from web.accounts.tables import AuditEntry, User
from web.api.tables import Token
from web.api.tokens import MOST_VALID, PREFIX


def made(visitor: Visitor, name: str = "a laptop", days: str = "90") -> Any:
    return visitor.post("/account/tokens", {"name": name, "days": days}, "/account/tokens")


def text_of(answer: Any) -> str:
    return re.search(rf"{PREFIX}[\w-]{{43}}", answer.text)[0]


def test_a_token_is_shown_once_and_opens_the_api(app, store, signed_in):
    anna = signed_in("anna")
    answer = made(anna)
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    token = text_of(answer)
    assert PREFIX not in anna.get("/account/tokens").text
    program = Program(app, token)
    assert program.get("/me").json == {"login": "anna", "name": "Anna", "role": "learner"}
    with store.read() as session:
        kept = session.scalars(select(Token)).one()
        assert token not in repr(vars(kept))
        assert kept.last_used_at is not None
        [entry] = session.scalars(select(AuditEntry).where(AuditEntry.action == "token_made"))
        assert entry.target == f"user {kept.user_id}"
        assert token not in repr(entry.detail)


def test_a_revoked_token_opens_nothing(app, store, signed_in):
    anna, other = signed_in("anna"), signed_in("otto")
    program = Program(app, text_of(made(anna)))
    with store.read() as session:
        number = session.scalars(select(Token.id)).one()
    assert other.post(f"/account/tokens/{number}/revoke", {}, "/account").status_code == 404
    assert program.get("/me").status_code == 200
    assert anna.post(f"/account/tokens/{number}/revoke", {}, "/account").status_code == 303
    assert program.get("/me").status_code == 401
    assert anna.post(f"/account/tokens/{number}/revoke", {}, "/account").status_code == 404
    with store.read() as session:
        assert session.scalars(select(AuditEntry.action).where(AuditEntry.action == "token_revoked")).one()


@pytest.mark.parametrize("what", ["expired", "closed", "deleted", "must_change"])
def test_what_ends_a_token(app, store, program, what):
    mine = program("anna")
    assert mine.get("/me").status_code == 200
    with app.test_request_context(), store.write() as session:
        user = session.get_one(User, mine.user.id)
        if what == "expired":
            session.execute(update(Token).values(expires_at=1.0))
        elif what == "closed":
            people.disable(session, user, "test")
        elif what == "deleted":
            people.remove(session, user, "test")
        else:
            people.reset_password(session, user, "test")
    answer = mine.get("/me")
    assert answer.status_code == (403 if what == "must_change" else 401)
    assert answer.json["error"]
    assert answer.json["advice"]


def test_there_may_be_only_so_many(app, store, signed_in):
    anna = signed_in("anna")
    with store.write() as session:
        user = session.scalars(select(User.id)).one()
        for n in range(MOST_VALID):
            session.add(Token(user_id=user, name="x", token_hash=f"{n:064}", expires_at=9e9))
    answer = made(anna)
    assert answer.status_code == 409
    assert "Revoke one" in answer.text


@pytest.mark.parametrize(("name", "days"), [("", "90"), ("x" * 81, "90"), ("a laptop", "36500")])
def test_a_form_that_does_not_fit_makes_none(store, signed_in, name, days):
    assert made(signed_in("anna"), name, days).status_code == 422
    with store.read() as session:
        assert session.scalars(select(Token.id)).all() == []


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}",  # the start address: not on a site with accounts
        f"Bearer {PREFIX}",
        f"Bearer {PREFIX}{'A' * 43}",
        "Bearer \xff",
        f"Basic {PASSWORD}",
    ],
)
def test_nothing_else_opens_it(program, header):
    mine = program("anna")
    headers = {"Accept-Language": "en"} | ({} if header is None else {"Authorization": header})
    answer = mine.client.get("/api/v1/me", base_url="http://course.example.edu:8000", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.json.keys() == {"error", "advice", "fields"}


def test_a_session_is_no_token_and_a_token_no_session(app, program, signed_in):
    anna = signed_in("anna")
    assert anna.get("/api/v1/me").status_code == 401
    mine = program("otto")
    answer = mine.client.get(
        "/submissions",
        base_url="http://course.example.edu:8000",
        headers={"Authorization": f"Bearer {mine.token}"},
    )
    assert answer.status_code == 303  # to sign in


def test_a_strange_host_is_refused(program):
    mine = program("anna")
    answer = mine.client.get(
        "/api/v1/me",
        base_url="http://evil.example.com",
        headers={"Authorization": f"Bearer {mine.token}"},
    )
    assert answer.status_code == 403
    assert answer.json["error"]
