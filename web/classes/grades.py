"""The grade book of an assignment, computed from what was submitted each time it is looked at. Nothing of it is stored: a
rejudge shows at once, and the time of a submission is that of its arrival, whenever it was judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from judge.core.status import Status
from judge.store import Judgement, Submission
from web.accounts.tables import User
from web.classes import extensions
from web.classes.extensions import Times
from web.classes.tables import AssignedProblem, Assignment, Class, Member

MINUTE_S = 60.0  # a deadline is written to the minute and lasts until that minute is over
# Not the learner's doing: neither counts as an attempt.
UNCOUNTED = frozenset({Status.SYSTEM_ERROR, Status.CANCELLED})


@dataclass(frozen=True)
class Attempt:
    """A submission as far as grading looks at it."""

    id: int
    user: str
    problem: int
    created_at: float
    status: Status
    passed: int
    total: int


@dataclass(frozen=True)
class Cell:
    """What a learner has in one problem. `best` is the attempt that counts, None if there is none; `tries` how many were
    counted; `waiting` how many have no verdict yet."""

    points: float
    best: Attempt | None
    tries: int
    waiting: int
    late: bool

    @property
    def solved(self) -> bool:
        return self.best is not None and self.best.status is Status.ACCEPTED


@dataclass(frozen=True)
class Line:
    """A learner's line of the grade book. `times`: those of the assignment for this learner."""

    member: Member
    user: User
    times: Times
    cells: Mapping[int, Cell]

    @property
    def points(self) -> float:
        return round(sum(c.points for c in self.cells.values()), 2)


def grade(
    assignment: Assignment, times: Times, points: int, joined_at: float, attempts: Iterable[Attempt]
) -> Cell:
    """Grade one learner's attempts at one problem, by the learner's times. The best counts, of equals the earliest."""
    counted = [a for a in sorted(attempts, key=lambda a: a.id) if _counts(times, joined_at, a)]
    if assignment.attempts is not None:
        counted = counted[: assignment.attempts]
    best: tuple[float, Attempt] | None = None
    for attempt in counted:
        worth = _worth(assignment, times, points, attempt)
        if attempt.status.is_final and (best is None or worth > best[0] or _is_further(worth, attempt, best)):
            best = (worth, attempt)
    return Cell(
        points=best[0] if best else 0.0,
        best=best[1] if best else None,
        tries=len(counted),
        waiting=sum(not a.status.is_final for a in counted),
        late=best is not None and is_late(times, best[1].created_at),
    )


def is_late(times: Times, at: float) -> bool:
    """True for what comes after the deadline."""
    return at >= times.deadline_at + MINUTE_S


def is_closed(times: Times, at: float) -> bool:
    """True when nothing counts any more."""
    return at >= times.closes_at + MINUTE_S


def counts_at(times: Times, joined_at: float, at: float) -> bool:
    """True for what somebody hands in while the assignment is open to them, not before they joined the class."""
    return times.opens_at <= at and joined_at <= at and not is_closed(times, at)


def book(
    session: Session,
    assignment: Assignment,
    problems: Sequence[AssignedProblem],
    learners: Sequence[tuple[Member, User]],
) -> list[Line]:
    """The lines of these learners, in their order; one query for all."""
    own = extensions.of_assignment(session, assignment.id)
    personal = {user.id: extensions.times(assignment, own.get(user.id)) for _, user in learners}
    keys = {user.key for _, user in learners}
    until = max((t.closes_at for t in personal.values()), default=0.0) + MINUTE_S
    archived_at = session.scalar(select(Class.archived_at).where(Class.id == assignment.class_id))
    until = min(until, archived_at or until)  # nothing is handed in to an archived class
    found: dict[tuple[str, int], list[Attempt]] = {}
    for attempt in _attempts(session, assignment, until, [p.problem for p in problems], keys):
        found.setdefault((attempt.user, attempt.problem), []).append(attempt)
    return [
        Line(
            member,
            user,
            personal[user.id],
            {
                p.problem: grade(
                    assignment,
                    personal[user.id],
                    p.points,
                    member.joined_at,
                    found.get((user.key, p.problem), []),
                )
                for p in problems
            },
        )
        for member, user in learners
    ]


def _attempts(
    session: Session, assignment: Assignment, until: float, problems: Sequence[int], keys: set[str]
) -> Iterable[Attempt]:
    query = (
        select(
            Submission.id,
            Submission.user,
            Submission.problem,
            Submission.created_at,
            # While it is judged again, the verdict that it has goes on counting.
            func.coalesce(Judgement.status, Submission.status).label("status"),
            Judgement.passed,
            Judgement.total,
        )
        .outerjoin(Judgement, Judgement.id == Submission.current_judgement)
        .where(
            Submission.user.in_(keys),
            Submission.problem.in_(problems),
            Submission.public_only.is_(False),
            Submission.created_at >= assignment.opens_at,
            Submission.created_at < until,
        )
        .order_by(Submission.id)
    )
    for row in session.execute(query):
        yield Attempt(
            row.id,
            row.user,
            row.problem,
            row.created_at,
            Status(row.status),
            row.passed or 0,
            row.total or 0,
        )


def _counts(times: Times, joined_at: float, attempt: Attempt) -> bool:
    return counts_at(times, joined_at, attempt.created_at) and attempt.status not in UNCOUNTED


def _worth(assignment: Assignment, times: Times, points: int, attempt: Attempt) -> float:
    if attempt.status is Status.ACCEPTED:
        share = 1.0
    else:
        share = attempt.passed / attempt.total if assignment.partial and attempt.total else 0.0
    if is_late(times, attempt.created_at):
        share *= assignment.late_percent / 100
    return round(points * share, 2)


def _is_further(worth: float, attempt: Attempt, best: tuple[float, Attempt]) -> bool:
    """Of two that are worth the same, the solved one, then the one with more cases passed."""
    mine = (attempt.status is Status.ACCEPTED, attempt.passed)
    return worth == best[0] and mine > (best[1].status is Status.ACCEPTED, best[1].passed)
