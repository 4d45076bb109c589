"""Tables of accounts, on the metadata of `judge.store`. Times are seconds since 1970 by the database's clock."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Index, String
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from judge.store import now
from judge.store.tables import Base


class Role(StrEnum):
    """What an account may do on the whole site. Who teaches a class is written there (`web.classes`)."""

    LEARNER = "learner"
    TEACHER = "teacher"  # may make classes
    ADMIN = "admin"


class User(Base):
    """An account.

    Invariants
    - `login` is unique, lower case, and made of the characters that `names.clean_login` lets through.
    - `key` is what submissions name as their user; an id is never given twice, so a key never changes hands.
    - `session_version` grows whenever all sessions of the account are to end; a session names the one it began with.
    - `oidc_subject` is "issuer|subject" of an account that signs in elsewhere; no two have the same.
    - `password_hash` is an argon2 hash, or None for an account that signs in elsewhere or was never given a password.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    login: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(80))
    role: Mapped[str] = mapped_column(String(16), default=str(Role.LEARNER))
    password_hash: Mapped[str | None] = mapped_column(String(255))
    oidc_subject: Mapped[str | None] = mapped_column(String(255))
    must_change_password: Mapped[bool] = mapped_column(default=False)
    session_version: Mapped[int] = mapped_column(default=1)
    time_zone: Mapped[str] = mapped_column(String(64), default="")
    created_at: Mapped[float] = mapped_column(default=now())
    last_seen_at: Mapped[float | None]
    disabled_at: Mapped[float | None]

    __table_args__ = (Index(None, "oidc_subject", unique=True), {"sqlite_autoincrement": True})

    @property
    def key(self) -> str:
        return key_of(self.id)


class Event(StrEnum):
    """What the audit log tells of. Values are kept in the database: never change one (`web.admin.audit` words them)."""

    ACCOUNT_MADE = "account_made"
    REGISTERED = "registered"
    OIDC_LINKED = "oidc_linked"
    PASSWORD_RESET = "password_reset"
    PASSWORD_CHANGED = "password_changed"
    ROLE = "role"
    DISABLED = "disabled"
    ENABLED = "enabled"
    DELETED = "deleted"
    TOKEN_MADE = "token_made"
    TOKEN_REVOKED = "token_revoked"
    CLASS_MADE = "class_made"
    ARCHIVED = "archived"
    REOPENED = "reopened"
    ADDED = "added"
    REMOVED = "removed"
    LEFT = "left"
    ROSTER = "roster"
    LINK_MADE = "link_made"
    LINK_CLOSED = "link_closed"
    ANNOUNCED = "announced"
    ANNOUNCEMENT_DELETED = "announcement_deleted"
    ASSIGNMENT_SET = "assignment_set"
    ASSIGNMENT_CHANGED = "assignment_changed"
    ASSIGNMENT_DELETED = "assignment_deleted"
    DEADLINE_EXTENDED = "deadline_extended"
    EXTENSION_TAKEN_BACK = "extension_taken_back"
    JUDGED_AGAIN = "judged_again"
    SUBMISSIONS_FORGOTTEN = "submissions_forgotten"


class AuditEntry(Base):
    """Who did what to whom. Append-only; `action` is an Event, `target` names the object ("user 7"), `detail` what an
    auditor needs and never a password, token or program."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float] = mapped_column(default=now())
    actor: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(40))
    target: Mapped[str] = mapped_column(String(80))
    detail: Mapped[dict[str, Any]]

    __table_args__ = (Index(None, "target"), {"sqlite_autoincrement": True})


def key_of(number: int) -> str:
    """What submissions call the account of that id."""
    return f"u{number}"


def key_in_sql(user_id: InstrumentedAttribute[int]) -> ColumnElement[str]:
    """`key_of` of a column."""
    key: ColumnElement[str] = "u" + user_id.cast(String(20))
    return key
