"""Whose turn it is. Each user has a virtual time, in seconds of judging they were given; who has had least is next. Whoever
comes back after a pause starts from the least of those who are active, so nobody saves up turns, and a flood of one user
delays another by the case that runs at most.

All of it happens inside the transactions of `queue`: a claim and its charge are one.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from judge.core.status import Status
from judge.store.tables import INTERACTIVE, Share, Submission

ACTIVE = (str(Status.QUEUED), str(Status.RUNNING))
ESTIMATE_S = 1.0  # charged at the claim; the finish corrects it to what it took


def become_active(session: Session, user: str) -> None:
    """Before a submission of `user` is queued: if they have nothing in the queue, raise their virtual time to the least
    of those who have. Otherwise a newcomer, whose time is 0, would keep everybody else waiting. What staff has judged
    again makes nobody active: it is charged to nobody."""
    active = Submission.status.in_(ACTIVE) & (Submission.priority == INTERACTIVE)
    mine = select(Submission.id).where(Submission.user == user, active).limit(1)
    if session.scalars(mine).first() is not None:
        return
    # Without what is charged for runs that have not ended: an estimate that turns out too high must not let the others
    # go first once more.
    held = func.sum(case((Submission.status == Status.RUNNING, Submission.charged_s), else_=0.0))
    settled = (
        select((Share.virtual_s - held).label("settled_s"))
        .join(Submission, Submission.user == Share.user)
        .where(active)
        .group_by(Share.user, Share.virtual_s)
        .subquery()
    )
    least = session.scalars(select(func.min(settled.c.settled_s))).one()
    insert: Any = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    made = insert(Share).values(user=user, virtual_s=least or 0.0)
    session.execute(
        made.on_conflict_do_update(
            index_elements=[Share.user],
            set_={"virtual_s": made.excluded.virtual_s},
            where=made.excluded.virtual_s > Share.virtual_s,
        )
    )


def charge(session: Session, user: str, seconds: float) -> None:
    """Count `seconds` of judging for `user`; negative to give some back."""
    session.execute(
        update(Share)
        .where(Share.user == user)
        .values(virtual_s=Share.virtual_s + seconds)
        .execution_options(synchronize_session=False)
    )


def next_in_line() -> Select[int]:
    """The submission to judge next: learners' before rejudges, then by virtual time, then by arrival."""
    return (
        select(Submission.id)
        .outerjoin(Share, Share.user == Submission.user)
        .where(Submission.status == Status.QUEUED)
        .order_by(
            Submission.priority, func.coalesce(Share.virtual_s, 0.0), Submission.queued_at, Submission.id
        )
        .limit(1)
    )


def ahead_of(submission: int) -> Select[int]:
    """How many queued submissions will be judged before that one, as far as is known now: if each takes ESTIMATE_S."""
    nth = func.row_number().over(
        partition_by=(Submission.user, Submission.priority), order_by=(Submission.queued_at, Submission.id)
    )
    line = (
        select(
            Submission.id,
            Submission.priority,
            (func.coalesce(Share.virtual_s, 0.0) + (nth - 1) * ESTIMATE_S).label("due"),
        )
        .outerjoin(Share, Share.user == Submission.user)
        .where(Submission.status == Status.QUEUED)
        .cte("line")
    )
    mine = select(line).where(line.c.id == submission).subquery()
    return select(func.count()).select_from(line, mine).where(_before(line.c, mine.c))


def _before(a: Any, b: Any) -> ColumnElement[bool]:
    """a stands before b: by priority, then by when it is due, then by number."""
    same = a.priority == b.priority
    return or_(a.priority < b.priority, and_(same, tuple_(a.due, a.id) < tuple_(b.due, b.id)))
