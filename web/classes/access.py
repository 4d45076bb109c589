"""Who may see and do what in a class. Somebody who isn't in it learns nothing of it, not even that it exists."""

from __future__ import annotations

from dataclasses import dataclass

from flask import abort
from flask_babel import gettext
from sqlalchemy import select

from judge.store import now
from web.accounts.identity import Identity, identity
from web.accounts.tables import User
from web.classes.tables import Assignment, Class, Member, Part
from web.errors import Told
from web.services import services


@dataclass(frozen=True)
class Seat:
    """A class as the one who asks sees it. `teaches`: as its teacher, or as an administrator."""

    who: Identity
    of: Class
    member: Member | None

    @property
    def teaches(self) -> bool:
        return self.who.is_admin or (self.member is not None and self.member.part == Part.TEACHER)

    @property
    def changes(self) -> bool:
        """Whether I teach here and the class is not archived."""
        return self.teaches and self.of.archived_at is None


def seat(number: int, *, teaching: bool = False, changing: bool = False) -> Seat:
    """My place in that class; aborts with 404 if there is no such class or I am not in it, with 403 if I learn in it and
    `teaching` is asked for, and with 409 if it is archived and `changing` is: an archived class is for reading."""
    who = identity()
    if who is None:
        abort(401)
    with services().store.read() as session:
        found = session.get(Class, number) if number < 2**63 else None
        member = session.get(Member, (number, who.number)) if found is not None else None
    if found is None or not (member or who.is_admin):
        abort(404)
    mine = Seat(who, found, member)
    if teaching and not mine.teaches:
        abort(403)
    if changing and found.archived_at is not None:
        raise Told(
            409,
            gettext("The class is archived"),
            gettext(
                "It is for reading, and nothing in it changes. Reopen it first, on the page of the class."
            )
            if mine.teaches
            else gettext("It is for reading, and nothing in it changes. Ask its teacher to reopen it."),
        )
    return mine


def assignment_or_404(of: Seat, number: int) -> Assignment:
    """An assignment of that class; learners see it from its opening on. Aborts with 404."""
    with services().store.read() as session:
        found = session.get(Assignment, number) if number < 2**63 else None
        is_open = found is not None and found.opens_at <= session.scalars(select(now())).one()
    if found is None or found.class_id != of.of.id or not (is_open or of.teaches):
        abort(404)
    return found


def learner_or_404(of: Seat, number: int) -> tuple[Member, User]:
    """A learner of that class. Aborts with 404."""
    with services().store.read() as session:
        member = session.get(Member, (of.of.id, number)) if number < 2**63 else None
        user = session.get(User, number) if member is not None else None
    if member is None or user is None or member.part != Part.LEARNER:
        abort(404)
    return member, user
