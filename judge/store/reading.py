"""What pages ask of the store. Nothing here returns a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, Row, Select, func, select
from sqlalchemy.orm import Session

from judge.core.status import Status
from judge.core.verdict import Json
from judge.store import fairness
from judge.store.tables import CaseProgress, Judgement, Submission


@dataclass(frozen=True)
class Summary:
    """A submission as a list shows it. Times in seconds since 1970; `passed` and `total` are None before a
    verdict. `again`: it is being judged again; until that has ended, `status` and all else are those of the verdict that
    counts so far."""

    id: int
    problem: int
    status: Status
    public_only: bool
    created_at: float
    finished_at: float | None
    passed: int | None
    total: int | None
    again: bool


@dataclass(frozen=True)
class Details(Summary):
    """A submission with its text and, once it has one, its verdict. `ahead` counts those before it in the
    queue."""

    source: bytes
    attempt: int
    crashes: int
    verdict: dict[str, Json] | None
    ahead: int


_SUMMARY = (
    Submission.id,
    Submission.problem,
    func.coalesce(Judgement.status, Submission.status).label("status"),
    Submission.public_only,
    Submission.created_at,
    func.coalesce(Submission.finished_at, Judgement.created_at).label("finished_at"),
    Judgement.passed,
    func.coalesce(Judgement.total, Submission.total).label("total"),
    (Judgement.id.is_not(None) & Submission.status.in_(fairness.ACTIVE)).label("again"),
)


def _select(*more: Any) -> Select[Any]:
    return select(*_SUMMARY, *more).outerjoin(Judgement, Judgement.id == Submission.current_judgement)


def _fields(row: Row[Any]) -> dict[str, Any]:
    return {**row._mapping, "status": Status(row.status)}


def history(
    session: Session, user: str, problem: int | None = None, limit: int = 50, before: int | None = None
) -> list[Summary]:
    """The user's submissions, newest first; with `before`, those with a smaller id."""
    query = _select().where(Submission.user == user).order_by(Submission.id.desc()).limit(limit)
    if problem is not None:
        query = query.where(Submission.problem == problem)
    if before is not None:
        query = query.where(Submission.id < before)
    return [Summary(**_fields(row)) for row in session.execute(query)]


def find(session: Session, user: str, submission: int) -> Details | None:
    """The user's own submission of that id; None if there is none or it is another's."""
    query = _select(Submission.source, Submission.attempt, Submission.crashes, Judgement.verdict).where(
        Submission.id == submission, Submission.user == user
    )
    row = session.execute(query).one_or_none()
    if row is None:
        return None
    ahead = 0
    if row.status == Status.QUEUED:
        ahead = session.scalars(fairness.ahead_of(submission)).one()
    return Details(**_fields(row), ahead=ahead)


def judged_by(session: Session, submission: int) -> str | None:
    """The problem version of the verdict that counts; None if there is none. Not that of the latest attempt: judging again
    by another version may have failed. The seed is the same for all attempts."""
    query = (
        select(Judgement.verdict["version"].as_string())
        .join(Submission, Submission.current_judgement == Judgement.id)
        .where(Submission.id == submission)
    )
    return session.scalars(query).one_or_none()


def with_verdicts(session: Session, problem: int) -> list[int]:
    """The ids of all submissions to the problem that have a verdict, of everybody, in order."""
    query = select(Submission.id).where(
        Submission.problem == problem,
        Submission.finished_at.is_not(None),
        Submission.current_judgement.is_not(None),
    )
    return list(session.scalars(query.order_by(Submission.id)))


def before(session: Session, user: str, problem: int, submission: int) -> int | None:
    """The user's last submission to the problem before that one; None if there is none."""
    return session.scalar(
        select(func.max(Submission.id)).where(
            Submission.user == user, Submission.problem == problem, Submission.id < submission
        )
    )


def progress(
    session: Session, submission: int, attempt: int, after: int
) -> list[tuple[int, dict[str, Json]]]:
    """The cases of that attempt past number `after`, as (number, result)."""
    query = (
        select(CaseProgress.seq, CaseProgress.result)
        .where(
            CaseProgress.submission == submission,
            CaseProgress.attempt == attempt,
            CaseProgress.seq > after,
        )
        .order_by(CaseProgress.seq)
    )
    return [(row.seq, row.result) for row in session.execute(query)]


def standing(session: Session, user: str) -> dict[int, bool]:
    """The problems that the user has submitted to: True if one submission (not just a run) was accepted."""
    query = (
        select(
            Submission.problem,
            func.max((func.coalesce(Judgement.status, "") == Status.ACCEPTED).cast(Integer)),
        )
        .outerjoin(Judgement, Judgement.id == Submission.current_judgement)
        .where(Submission.user == user, Submission.public_only.is_(False))
        .group_by(Submission.problem)
    )
    return {problem: bool(solved) for problem, solved in session.execute(query)}


def is_solved(session: Session, user: str, problem: int) -> bool:
    """Whether a submission (not just a run) of the user's to the problem was accepted."""
    query = select(_accepted(user, problem).exists())
    return bool(session.scalar(query))


def accepted_sources(
    session: Session, user: str, problem: int, limit: int = 50
) -> list[tuple[int, float, bytes]]:
    """The user's accepted submissions (not runs) to the problem, newest first: (id, time, source). Of those with the same
    text, the first that was sent."""
    query = _accepted(user, problem).order_by(Submission.id.desc()).limit(limit)
    first: dict[bytes, tuple[int, float, bytes]] = {}
    for row in session.execute(query):
        first[row.source] = (row.id, row.created_at, row.source)
    return sorted(first.values(), reverse=True)


def _accepted(user: str, problem: int) -> Select[int, float, bytes]:
    """By the verdict that counts: while it is judged again, a submission goes on being accepted."""
    return (
        select(Submission.id, Submission.created_at, Submission.source)
        .join(Judgement, Judgement.id == Submission.current_judgement)
        .where(
            Submission.user == user,
            Submission.problem == problem,
            Submission.public_only.is_(False),
            Judgement.status == Status.ACCEPTED,
        )
    )


def recent_problems(session: Session, submissions: int = 500) -> list[int]:
    """Problems of the latest `submissions` submissions, the most recent first."""
    latest = select(Submission.id, Submission.problem).order_by(Submission.id.desc()).limit(submissions)
    return list(dict.fromkeys(problem for _, problem in session.execute(latest)))
