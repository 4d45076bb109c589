"""Until when a class keeps the references of its problems to itself."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from judge.store import now
from web.classes.tables import AssignedProblem, Assignment, Class, Member, Part


def hidden_until(session: Session, user: int, problem: int) -> float | None:
    """When those who learn in a class with an assignment on this problem may see its reference, the latest of all; None
    if nothing hides it now. Seconds since 1970."""
    query = (
        select(func.max(Assignment.references_at))
        .join(AssignedProblem, AssignedProblem.assignment_id == Assignment.id)
        .join(Member, Member.class_id == Assignment.class_id)
        .join(Class, Class.id == Assignment.class_id)
        .where(
            AssignedProblem.problem == problem,
            Member.user_id == user,
            Member.part == Part.LEARNER,
            Assignment.references_at > now(),
            Class.archived_at.is_(None),
        )
    )
    return session.scalars(query).one()
