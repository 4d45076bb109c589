"""Deadlines of their own: what a teacher grants a single learner of an assignment.

Everything that comes after the deadline moves with it: how long late submissions count, and until when references are
hidden (where they are hidden until the deadline or longer). An extension never shortens: where the deadline of all is
later by now, that one holds."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from web.classes.tables import Assignment, Extension


@dataclass(frozen=True)
class Times:
    """The moments of an assignment as they are for one learner, in seconds since 1970. `extended`: the deadline is the
    learner's own."""

    opens_at: float
    deadline_at: float
    late_until: float | None
    references_at: float | None
    extended: bool = False

    @property
    def closes_at(self) -> float:
        """From when on nothing counts any more."""
        return self.late_until if self.late_until is not None else self.deadline_at


def times(assignment: Assignment, own_deadline: float | None = None) -> Times:
    """The times of an assignment for a learner with that deadline of their own; None for one without."""
    later = max(0.0, own_deadline - assignment.deadline_at) if own_deadline is not None else 0.0
    late_until, references_at = assignment.late_until, assignment.references_at
    follows = references_at is not None and references_at >= assignment.deadline_at
    return Times(
        opens_at=assignment.opens_at,
        deadline_at=assignment.deadline_at + later,
        late_until=late_until + later if late_until is not None else None,
        references_at=references_at + later if references_at is not None and follows else references_at,
        extended=later > 0,
    )


def of_assignment(session: Session, assignment: int) -> dict[int, float]:
    """Account -> its own deadline, of those that have one."""
    query = select(Extension.user_id, Extension.deadline_at).where(Extension.assignment_id == assignment)
    return {user: deadline for user, deadline in session.execute(query)}


def grant(session: Session, assignment: int, user: int, deadline_at: float) -> None:
    """Give a learner that deadline, instead of one they were given before."""
    session.merge(Extension(assignment_id=assignment, user_id=user, deadline_at=deadline_at))


def take_back(session: Session, assignment: int, user: int) -> bool:
    """The deadline of all holds again; False if it did."""
    gone = delete(Extension).where(Extension.assignment_id == assignment, Extension.user_id == user)
    return bool(session.execute(gone).rowcount)  # type: ignore[attr-defined]  # a DELETE's result has it
