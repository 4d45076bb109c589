"""Tokens of accounts: drawn, found again by what was sent, revoked. Each function works inside a session of the caller."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from flask_babel import gettext
from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from judge.store import now
from web.accounts import people
from web.accounts.tables import Event, User
from web.api.tables import Token

PREFIX = "sxms_"  # so that a token is known for one wherever it turns up, a repository above all
MOST_VALID = 20  # of one account
DAY_S = 24 * 3600.0
USED_EVERY_S = 60.0  # a request that only reads must not cost a write each time


class TokenRefused(ValueError):
    """A token cannot be made; the text says why, in the reader's language."""


def make(session: Session, user: User, *, name: str, days: int) -> tuple[Token, str]:
    """A new token of the account and its text, which is told this once. Raises TokenRefused."""
    valid = select(func.count()).where(Token.user_id == user.id, *_valid())
    if session.scalars(valid).one() >= MOST_VALID:
        raise TokenRefused(
            gettext("You have %(n)s valid tokens, which is the most. Revoke one first.", n=MOST_VALID)
        )
    text = PREFIX + secrets.token_urlsafe(32)
    at = session.scalars(select(now())).one()
    token = Token(user_id=user.id, name=name, token_hash=_hash(text), expires_at=at + days * DAY_S)
    session.add(token)
    session.flush()
    people.note(session, user.key, Event.TOKEN_MADE, f"user {user.id}", token=token.id, days=days)
    return token, text


def listed(session: Session, user_id: int) -> Sequence[tuple[Token, bool]]:
    """The account's tokens that were not revoked, newest first, each with whether it is still valid."""
    query = (
        select(Token, (Token.expires_at > now()).label("valid"))
        .where(Token.user_id == user_id, Token.revoked_at.is_(None))
        .order_by(Token.id.desc())
        .limit(200)
    )
    return [(row[0], bool(row[1])) for row in session.execute(query)]


def revoke(session: Session, user: User, number: int) -> bool:
    """End a token of the account. False if it has no such token, or it was ended before."""
    ended = session.execute(
        update(Token)
        .where(Token.id == number, Token.user_id == user.id, Token.revoked_at.is_(None))
        .values(revoked_at=now())
    )
    if ended.rowcount != 1:  # type: ignore[attr-defined]  # an UPDATE's result has it
        return False
    people.note(session, user.key, Event.TOKEN_REVOKED, f"user {user.id}", token=number)
    return True


def find(session: Session, text: str) -> tuple[int, User, bool] | None:
    """(the token's id, its account, whether its use is to be noted); None for a text that opens nothing."""
    if not text.startswith(PREFIX):
        return None
    stale = func.coalesce(Token.last_used_at, 0.0) < now() - USED_EVERY_S
    query = (
        select(Token.id, User, stale.label("stale"))
        .join(User, User.id == Token.user_id)
        .where(Token.token_hash == _hash(text), User.disabled_at.is_(None), *_valid())
    )
    row = session.execute(query).one_or_none()
    return (row[0], row[1], bool(row[2])) if row is not None else None


def used(session: Session, number: int) -> None:
    session.execute(update(Token).where(Token.id == number).values(last_used_at=now()))


def _valid() -> tuple[ColumnElement[bool], ...]:
    return Token.revoked_at.is_(None), Token.expires_at > now()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
