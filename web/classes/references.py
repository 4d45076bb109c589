"""Until when a class keeps the references of its problems to itself."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from judge.store import now
from web.classes.extensions import times
from web.classes.tables import AssignedProblem, Assignment, Class, Extension, Member, Part


def hidden_until(session: Session, user: int, problem: int) -> float | None:
    """When that account, which learns in a class with an assignment on this problem, may see its reference, the latest of
    all; None if nothing hides it now. Seconds since 1970."""
    query = (
        select(Assignment, Extension.deadline_at)
        .join(AssignedProblem, AssignedProblem.assignment_id == Assignment.id)
        .join(Member, Member.class_id == Assignment.class_id)
        .join(Class, Class.id == Assignment.class_id)
        .outerjoin(
            Extension, (Extension.assignment_id == Assignment.id) & (Extension.user_id == Member.user_id)
        )
        .where(
            AssignedProblem.problem == problem,
            Member.user_id == user,
            Member.part == Part.LEARNER,
            Assignment.references_at.is_not(None),
            Class.archived_at.is_(None),
        )
    )
    moments = [times(assignment, own).references_at for assignment, own in session.execute(query)]
    at = session.scalars(select(now())).one()
    return max((moment for moment in moments if moment is not None and moment > at), default=None)
