"""Links into a class. Who has one may join as a learner, until it ends, is used up or closed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from judge.store import now
from web.classes.tables import Class, Invitation, Member, Removal

DAY_S = 24 * 3600.0


def make(session: Session, class_id: int, *, days: int, most_uses: int) -> str:
    """A new link's token. It is not kept, only its hash."""
    token = secrets.token_urlsafe(24)
    at = session.scalars(select(now())).one()
    session.add(
        Invitation(
            class_id=class_id, token_hash=_hash(token), expires_at=at + days * DAY_S, most_uses=most_uses
        )
    )
    return token


def close(session: Session, link: Invitation) -> None:
    session.execute(update(Invitation).where(Invitation.id == link.id).values(closed_at=now()))


def is_open() -> tuple[ColumnElement[bool], ...]:
    """What holds of a link that still lets somebody in."""
    return (
        Invitation.closed_at.is_(None),
        Invitation.expires_at > now(),
        Invitation.uses < Invitation.most_uses,
    )


def find(session: Session, token: str) -> tuple[Invitation, Class] | None:
    """The link of that token and its class; None if it leads nowhere (any more)."""
    query = (
        select(Invitation, Class)
        .join(Class, Class.id == Invitation.class_id)
        .where(
            Invitation.token_hash == _hash(token),
            *is_open(),
            Class.archived_at.is_(None),
        )
    )
    row = session.execute(query).one_or_none()
    return (row[0], row[1]) if row is not None else None


def use(session: Session, link: Invitation, user: int) -> bool:
    """Bring somebody in. False if the link has been used up, closed or has ended meanwhile, and for somebody whom a teacher
    took out; being in already costs nothing."""
    if session.get(Member, (link.class_id, user)) is not None:
        return True
    if is_removed(session, link.class_id, user):
        return False
    spent = session.execute(
        update(Invitation)
        .where(Invitation.id == link.id, *is_open())
        .values(uses=Invitation.uses + 1)
        .execution_options(synchronize_session=False)
    )
    if spent.rowcount != 1:  # type: ignore[attr-defined]  # an UPDATE's result has it
        return False
    session.add(Member(class_id=link.class_id, user_id=user))
    return True


def is_removed(session: Session, class_id: int, user: int) -> bool:
    """True for somebody whom a teacher took out of the class and nobody has entered since."""
    return session.get(Removal, (class_id, user)) is not None


def open_ones(session: Session, class_id: int) -> Sequence[Invitation]:
    """The links of a class that still let somebody in."""
    query = select(Invitation).where(Invitation.class_id == class_id, *is_open())
    return session.scalars(query.order_by(Invitation.id)).all()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
