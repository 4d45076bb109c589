"""What the database tells about problems: who tries, who solves, how long it takes, which mistakes are made."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from judge.core.status import Status
from judge.store.tables import Judgement, Submission


@dataclass
class ProblemStats:
    """One problem. Runs of the public cases alone don't count. `seconds`: median over those who solved it, from a user's
    first submission to the first accepted one; None if nobody did. `mistakes`: how many submissions each known mistake
    was named for; `unnamed`: wrong ones without a name."""

    problem: int
    submissions: int = 0
    users: int = 0
    solvers: int = 0
    seconds: float | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    mistakes: Counter[str] = field(default_factory=Counter)
    unnamed: int = 0

    @property
    def solve_rate(self) -> float:
        """Solvers among those who tried, 0 to 1."""
        return self.solvers / self.users if self.users else 0.0


def problem_stats(session: Session) -> list[ProblemStats]:
    """Statistics of every problem that somebody has submitted to, by id."""
    rows = session.execute(
        select(
            Submission.problem,
            Submission.user,
            func.coalesce(Judgement.status, Submission.status),  # while judged again, the verdict that it has
            Submission.created_at,
            Judgement.verdict["diagnosis"],
        )
        .outerjoin(Judgement, Judgement.id == Submission.current_judgement)
        .where(Submission.public_only.is_(False))
        .order_by(Submission.problem, Submission.id)
    )
    found: dict[int, ProblemStats] = {}
    first: dict[tuple[int, str], float] = {}
    solved: dict[tuple[int, str], float] = {}
    for problem, user, status, created_at, diagnosis in rows:
        stats = found.setdefault(problem, ProblemStats(problem))
        stats.submissions += 1
        stats.statuses[status] += 1
        key = (problem, user)
        first.setdefault(key, created_at)
        if status == Status.ACCEPTED:
            solved.setdefault(key, created_at - first[key])
        names = {name for entry in diagnosis or [] for name in entry["names"]}
        stats.mistakes.update(names)
        stats.unnamed += status == Status.WRONG_ANSWER and not names
    for problem, stats in found.items():
        stats.users = sum(p == problem for p, _ in first)
        times = [seconds for (p, _), seconds in solved.items() if p == problem]
        stats.solvers = len(times)
        stats.seconds = statistics.median(times) if times else None
    return list(found.values())
