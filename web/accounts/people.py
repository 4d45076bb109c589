"""What is done with accounts, each inside a session that the caller opened with `store.write()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask_babel import gettext
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from judge.store import Submission, now
from web.accounts import passwords
from web.accounts.names import clean_login, clean_name
from web.accounts.passwords import Drawn
from web.accounts.tables import AuditEntry, Event, Role, User

# What other features hold against somebody's deleting their own account: a text that says what to do first, or None.
Obstacle = Callable[[Session, User], str | None]
OBSTACLES: list[Obstacle] = []


class AccountRefused(ValueError):
    """An account cannot be made or changed like that; the text says why, in the reader's language."""


def note(session: Session, actor: str, action: Event, target: str, **detail: Any) -> None:
    """Write a line of the audit log, in the transaction of what it tells of."""
    session.add(AuditEntry(actor=actor, action=str(action), target=target, detail=detail))


def create(
    session: Session,
    *,
    login: str,
    name: str,
    role: Role = Role.LEARNER,
    password_hash: str | None = None,
    must_change: bool = False,
) -> User:
    """A new account. Raises NameRefused, or AccountRefused if the sign-in name is taken."""
    login = clean_login(login)
    if by_login(session, login) is not None:
        raise AccountRefused(
            gettext("The sign-in name “%(login)s” is taken: choose another one.", login=login)
        )
    user = User(
        login=login,
        name=clean_name(name),
        role=str(role),
        password_hash=password_hash,
        must_change_password=must_change,
    )
    session.add(user)
    session.flush()
    return user


def create_for(session: Session, *, login: str, name: str, drawn: Drawn, role: Role = Role.LEARNER) -> User:
    """A new account for somebody else, who is handed that password and changes it at the first sign-in. Raises as `create`
    does."""
    return create(session, login=login, name=name, role=role, password_hash=drawn.hash, must_change=True)


def by_login(session: Session, login: str) -> User | None:
    """The account that signs in with that name, however it was typed."""
    return session.scalars(select(User).where(User.login == login.strip().lower())).one_or_none()


def admins(session: Session) -> int:
    """How many administrators can sign in."""
    query = select(func.count()).select_from(User).where(User.role == Role.ADMIN, User.disabled_at.is_(None))
    return session.scalars(query).one()


def set_password(user: User, password_hash: str, *, must_change: bool = False) -> None:
    """Give it a new password, by its hash: hashing is slow and belongs before the transaction. Every session that is open
    ends."""
    user.password_hash = password_hash
    user.must_change_password = must_change
    user.session_version += 1


def reset_password(session: Session, user: User, actor: str) -> str:
    """A drawn password, to be handed over once and changed at the next sign-in. Raises AccountRefused for an account that
    signs in elsewhere: a password would be a second way in, which its owner knows nothing of."""
    if user.oidc_subject:
        raise AccountRefused(
            gettext(
                "%(name)s signs in at the school and has no password here. If that fails, it has to be repaired there.",
                name=user.name,
            )
        )
    drawn = passwords.draw()
    set_password(user, drawn.hash, must_change=True)
    note(session, actor, Event.PASSWORD_RESET, f"user {user.id}")
    return drawn.text


def set_role(session: Session, user: User, role: Role, actor: str) -> None:
    """Raises AccountRefused when nobody would be left to administer the site."""
    if user.role == Role.ADMIN and role is not Role.ADMIN and user.disabled_at is None:
        _keep_one_admin(session)
    note(session, actor, Event.ROLE, f"user {user.id}", before=user.role, after=str(role))
    user.role = str(role)
    user.session_version += 1


def disable(session: Session, user: User, actor: str) -> None:
    """It can no longer sign in, and its sessions end. What it submitted stays. Raises AccountRefused for the last
    administrator."""
    if user.role == Role.ADMIN and user.disabled_at is None:
        _keep_one_admin(session)
    session.execute(
        update(User)
        .where(User.id == user.id)
        .values(disabled_at=now(), session_version=User.session_version + 1)
    )
    note(session, actor, Event.DISABLED, f"user {user.id}")


def enable(session: Session, user: User, actor: str) -> None:
    user.disabled_at = None
    note(session, actor, Event.ENABLED, f"user {user.id}")


def leave(session: Session, user: User) -> None:
    """Delete one's own account. Raises AccountRefused where something has to be done first."""
    for obstacle in OBSTACLES:
        if (text := obstacle(session, user)) is not None:
            raise AccountRefused(text)
    remove(session, user, user.key)


def remove(session: Session, user: User, actor: str) -> None:
    """Delete the account with all it submitted, verdicts included. The audit log keeps that it was done, by the
    account's number. Raises AccountRefused for the last administrator."""
    if user.role == Role.ADMIN and user.disabled_at is None:
        _keep_one_admin(session)
    session.execute(delete(Submission).where(Submission.user == user.key))
    note(session, actor, Event.DELETED, f"user {user.id}")
    session.delete(user)


def _keep_one_admin(session: Session) -> None:
    if admins(session) <= 1:
        raise AccountRefused(
            gettext(
                "This is the only administrator. Make someone else one first: the site must not be left without."
            )
        )
