"""The audit log in words. What is kept are codes and numbers: names change, and readers have two languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask_babel import gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from web.accounts import role_text
from web.accounts.identity import CONSOLE_KEY, LOCAL_KEY
from web.accounts.tables import AuditEntry, Event, User
from web.display import when


@dataclass(frozen=True)
class Line:
    """An entry for reading. `target` is what it is kept under, `details` are pairs of what something is and its value."""

    id: int
    at: float
    who: str
    what: str
    target: str
    target_text: str
    details: list[tuple[str, Any]]


def told(session: Session, entries: Sequence[AuditEntry]) -> list[Line]:
    """Those entries for reading, with the names that the accounts of these entries have now."""
    numbers = {n for e in entries for n in (_account(e.actor), _account(e.target), e.detail.get("user")) if n}
    found = session.execute(select(User.id, User.name).where(User.id.in_(numbers)))
    names: dict[int, str] = {number: name for number, name in found}
    return [
        Line(
            id=e.id,
            at=e.at,
            who=_actor(e.actor, names),
            what=event_text(e.action),
            target=e.target,
            target_text=target_text(e.target, names),
            details=[_detail(key, value, names) for key, value in sorted(e.detail.items(), key=_place)],
        )
        for e in entries
    ]


def event_text(action: str) -> str:
    """What an event is called; an action that this version of the site does not know stays what it is."""
    texts: dict[str, str] = {
        Event.ACCOUNT_MADE: gettext("Account created"),
        Event.REGISTERED: gettext("Registered"),
        Event.OIDC_LINKED: gettext("Sign-in at the school linked"),
        Event.PASSWORD_RESET: gettext("New password issued"),
        Event.PASSWORD_CHANGED: gettext("Password changed"),
        Event.ROLE: gettext("Role changed"),
        Event.DISABLED: gettext("Account closed"),
        Event.ENABLED: gettext("Account reopened"),
        Event.DELETED: gettext("Account deleted with all its submissions"),
        Event.TOKEN_MADE: gettext("Token created"),
        Event.TOKEN_REVOKED: gettext("Token revoked"),
        Event.CLASS_MADE: gettext("Class created"),
        Event.ARCHIVED: gettext("Class archived"),
        Event.REOPENED: gettext("Class reopened"),
        Event.ADDED: gettext("Added to the class"),
        Event.REMOVED: gettext("Removed from the class"),
        Event.LEFT: gettext("Left the class"),
        Event.ROSTER: gettext("Roster imported"),
        Event.LINK_MADE: gettext("Invite link created"),
        Event.LINK_CLOSED: gettext("Invite link closed"),
        Event.ANNOUNCED: gettext("Announcement posted"),
        Event.ANNOUNCEMENT_DELETED: gettext("Announcement deleted"),
        Event.ASSIGNMENT_SET: gettext("Assignment set"),
        Event.ASSIGNMENT_CHANGED: gettext("Assignment changed"),
        Event.ASSIGNMENT_DELETED: gettext("Assignment deleted"),
        Event.DEADLINE_EXTENDED: gettext("Deadline extended for one learner"),
        Event.EXTENSION_TAKEN_BACK: gettext("Extension withdrawn for one learner"),
        Event.JUDGED_AGAIN: gettext("Judged again"),
        Event.SUBMISSIONS_FORGOTTEN: gettext("Old submissions deleted"),
    }
    return texts.get(action, action)


def target_text(target: str, names: Mapping[int, str] | None = None) -> str:
    """What `target` ("user 7") is called; the account's name stands with it where it is known."""
    kind, _, number = target.partition(" ")
    texts = {
        "user": gettext("account %(n)s", n=number),
        "class": gettext("class %(n)s", n=number),
        "assignment": gettext("assignment %(n)s", n=number),
        "problem": gettext("problem %(n)s", n=number),
        "submission": gettext("submission %(n)s", n=number),
        "site": gettext("the site"),
    }
    name = (names or {}).get(_account(target) or 0)
    text = texts.get(kind, target)
    return f"{text} ({name})" if name else text


def _actor(key: str, names: Mapping[int, str]) -> str:
    if key == CONSOLE_KEY:
        return str(gettext("on the machine itself"))
    if key == LOCAL_KEY:
        return str(gettext("the owner of this site"))
    number = _account(key)
    if number is None:
        return key
    return names.get(number) or str(gettext("account %(n)s, deleted", n=number))


def _detail(key: str, value: Any, names: Mapping[int, str]) -> tuple[str, Any]:
    """What a detail is, and its value for reading."""
    labels: dict[str, str] = {
        "role": gettext("role"),
        "before": gettext("before"),
        "after": gettext("after"),
        "token": gettext("token number"),
        "days": gettext("days valid"),
        "name": gettext("named"),
        "title": gettext("named"),
        "user": gettext("person"),
        "part": gettext("as"),
        "entered": gettext("people imported"),
        "deadline": gettext("until"),
        "count": gettext("submissions"),
        "version": gettext("version"),
    }
    if key == "user":
        value = names.get(value) or gettext("account %(n)s, deleted", n=value)
    elif key in ("role", "before", "after", "part"):
        value = role_text(value)
    elif key == "deadline":
        value = when(value)
    return labels.get(key, key), value


def _place(detail: tuple[str, Any]) -> tuple[bool, str]:
    """Whom it was done to comes first."""
    return detail[0] != "user", detail[0]


def _account(text: str) -> int | None:
    """The number of the account that an actor ("u7") or a target ("user 7") names."""
    number = text.removeprefix("user ") if text.startswith("user ") else text.removeprefix("u")
    return int(number) if number != text and number.isdecimal() and len(number) < 19 else None
