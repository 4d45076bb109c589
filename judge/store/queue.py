"""How a submission moves: submitted, claimed under a lease, kept alive by heartbeats, finished once.

Every step is one transaction, judged by the database's clock, and every step of a worker names the attempt
it belongs to. A worker that was given up for dead and comes back holds an old number, so nothing it says
changes anything.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Update, delete, func, insert, select, update
from sqlalchemy.orm import Session

from judge.core.status import TRANSITIONS, Status
from judge.core.verdict import Json
from judge.store import fairness
from judge.store.clock import now
from judge.store.database import Store
from judge.store.tables import INTERACTIVE, REJUDGE, CaseProgress, Judgement, Submission

LEASE_S = 15.0
HEARTBEAT_S = 5.0
MAX_CRASHES = 3
SEED_BYTES = 16
MOST_AGAIN = 2000  # submissions that one transaction has judged again: a quarter of a second
MOST_QUEUED = 20  # waiting submissions of one user


class TooManyQueued(Exception):
    """The user has as many submissions waiting as one may have: `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} submissions are waiting already")
        self.most = most


@dataclass(frozen=True)
class Claim:
    """A submission in a worker's hands. `alone`: it has brought a worker down before, so nothing runs
    beside it."""

    submission: int
    attempt: int
    problem: int
    version: str
    source: bytes
    public_only: bool
    seed: bytes
    alone: bool


class Queue:
    """The queue of a store. Safe to use from threads and processes at once; holds no state of its own."""

    def __init__(
        self,
        store: Store,
        *,
        lease_s: float = LEASE_S,
        max_crashes: int = MAX_CRASHES,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self.store, self.lease_s, self.max_crashes = store, lease_s, max_crashes
        self.most_queued = most_queued

    def submit(
        self, *, user: str, problem: int, version: str, source: bytes, public_only: bool = False
    ) -> int:
        """Put a submission, exactly as it was received, into the queue; returns its id. Its seed is drawn here
        and never told. Raises TooManyQueued."""
        row = Submission(
            user=user,
            problem=problem,
            version=version,
            source=source,
            public_only=public_only,
            seed=secrets.token_bytes(SEED_BYTES),
        )
        waiting = select(func.count()).where(
            Submission.user == user,
            Submission.status == Status.QUEUED,
            Submission.priority == INTERACTIVE,
        )
        with self.store.write() as session:
            if session.scalars(waiting).one() >= self.most_queued:
                raise TooManyQueued(self.most_queued)
            fairness.become_active(session, user)
            session.add(row)
            session.flush()
            return row.id

    def rejudge(self, session: Session, versions: Mapping[int, str], submissions: Sequence[int]) -> int:
        """Have submissions that have a verdict judged again, after everybody who waits, with the seed they had;
        returns how many. `versions`: problem -> the version to judge by; submissions to other problems stay as
        they are. `submissions`: at most MOST_AGAIN, as others wait to write. When they arrived does not change, and
        until the new verdict is there the old one counts. In the caller's transaction, so that who wanted it is kept
        with it or not at all."""
        assert len(submissions) <= MOST_AGAIN
        count = 0
        for problem, version in versions.items():
            again = _again(problem, version).where(Submission.id.in_(submissions))
            count += int(session.execute(again).rowcount)  # type: ignore[attr-defined]
        return count

    def claim(self, worker: str) -> Claim | None:
        """Take the submission whose turn it is, or None. Two workers never get the same one: the statement
        that finds it is the one that marks it."""
        following = fairness.next_in_line().with_for_update(skip_locked=True, of=Submission)
        take = (
            _move(Status.RUNNING)
            .where(Submission.id == following.scalar_subquery())
            .values(
                attempt=Submission.attempt + 1,
                worker=worker,
                claimed_at=now(),
                lease_until=now() + self.lease_s,
                child_started=False,
                total=None,
                charged_s=fairness.ESTIMATE_S,
            )
            .returning(Submission)
        )
        with self.store.write() as session:
            row = session.scalars(take).one_or_none()
            if row is None:
                return None
            session.execute(delete(CaseProgress).where(CaseProgress.submission == row.id))
            _charge(session, row, fairness.ESTIMATE_S)
            return Claim(
                submission=row.id,
                attempt=row.attempt,
                problem=row.problem,
                version=row.version,
                source=row.source,
                public_only=row.public_only,
                seed=row.seed,
                alone=row.crashes > 0,
            )

    def heartbeat(self, claim: Claim) -> bool:
        """Renew the lease. False: it is no longer this worker's, and the run must end."""
        with self.store.write() as session:
            return _changed(session, _held(claim).values(lease_until=now() + self.lease_s))

    def started(self, claim: Claim, total: int | None) -> bool:
        """Say that a child runs now, over `total` cases: from here on a lost lease counts as a crash."""
        with self.store.write() as session:
            return _changed(session, _held(claim).values(child_started=True, total=total))

    def progress(self, claim: Claim, first: int, results: Sequence[dict[str, Json]]) -> bool:
        """Show cases `first`, `first + 1`, ... (counted from 1) to those who watch."""
        with self.store.write() as session:
            if not _changed(session, _held(claim).values(attempt=Submission.attempt)):
                return False
            session.execute(
                insert(CaseProgress),
                [
                    {"submission": claim.submission, "attempt": claim.attempt, "seq": seq, "result": result}
                    for seq, result in enumerate(results, first)
                ],
            )
            return True

    def finish(self, claim: Claim, verdict: dict[str, Json]) -> bool:
        """Append the verdict and end the submission. False, and nothing changes, when the lease is
        another's by now."""
        with self.store.write() as session:
            if session.scalars(select(Submission.id).where(*_is_of(claim))).one_or_none() is None:
                return False
            return self._finish(session, claim.submission, claim.attempt, verdict)

    def release(self, claim: Claim) -> bool:
        """Hand the submission back unfinished, as on a polite shutdown: it is queued again and no crash is
        counted."""
        with self.store.write() as session:
            row = session.scalars(select(Submission).where(*_is_of(claim))).one_or_none()
            if row is None:
                return False
            _charge(session, row, -row.charged_s)
            return _changed(
                session,
                _move(Status.QUEUED)
                .where(*_is_of(claim))
                .values(worker=None, claimed_at=None, lease_until=None, child_started=False, total=None),
            )

    def cancel(self, user: str, submission: int) -> bool:
        """End the user's own submission that has no verdict yet, waiting or running: its lease is no longer anybody's,
        so whoever judges it stops at the next case and writes nothing. False, and nothing changes, if there is no
        such submission, it is another's, or it has ended."""
        with self.store.write() as session:
            row = session.get(Submission, submission)
            if row is None or row.user != user or row.priority != INTERACTIVE:  # a rejudge is not theirs
                return False
            if row.status == Status.RUNNING:
                _charge(session, row, _spent_s(session, row) - row.charged_s)
            ended = _changed(
                session,
                _move(Status.CANCELLED)
                .where(Submission.id == submission)
                .values(finished_at=now(), lease_until=None, worker=None),
            )
            if ended:
                session.execute(delete(CaseProgress).where(CaseProgress.submission == submission))
            return ended

    def recover(self) -> int:
        """Take back every lease that ran out; returns how many. A submission whose child had been started
        has crashed its worker, for all we know: it is queued again until `max_crashes`, then ended with a
        verdict that says so."""
        with self.store.write() as session:
            lost = session.scalars(
                select(Submission)
                .where(Submission.status == Status.RUNNING, Submission.lease_until < now())
                .with_for_update(skip_locked=True)
            ).all()
            for row in lost:
                row.crashes += row.child_started
                if row.crashes < self.max_crashes:  # else `_finish` charges it
                    _charge(session, row, _spent_s(session, row) - row.charged_s)
                if row.crashes >= self.max_crashes:
                    session.flush()
                    self._finish(session, row.id, row.attempt, _given_up(row))
                else:
                    row.status = str(Status.QUEUED)
                    row.worker = row.claimed_at = row.lease_until = row.total = None
                    row.child_started = False
            return len(lost)

    def _finish(self, session: Session, submission: int, attempt: int, verdict: dict[str, Json]) -> bool:
        status = Status(verdict["status"])
        before = session.get(Submission, submission)
        if before is None or before.attempt != attempt or before.status != Status.RUNNING:
            return False
        counts = True
        if status is Status.SYSTEM_ERROR and before.current_judgement is not None:
            # Judging again has failed, by no fault of the submission: the verdict that it had goes on counting.
            status = Status(session.get_one(Judgement, before.current_judgement).status)
            counts = False
        ended = (
            _move(status)
            .where(Submission.id == submission, Submission.attempt == attempt)
            .values(finished_at=now(), lease_until=None, worker=None)
            .returning(Submission.queued_at, Submission.claimed_at, Submission.finished_at)
        )
        queued, claimed, finished = (float(t or 0.0) for t in session.execute(ended).one())
        judged_s = finished - claimed
        judgement = Judgement(
            submission=submission,
            attempt=attempt,
            status=verdict["status"],
            passed=verdict["passed"],
            total=verdict["total"],
            tier=verdict["tier"],
            verdict=verdict,
            waited_s=claimed - queued,
            judged_s=judged_s,
        )
        session.add(judgement)
        session.flush()
        _charge(session, before, judged_s - before.charged_s)
        if counts:
            session.execute(
                update(Submission).where(Submission.id == submission).values(current_judgement=judgement.id)
            )
        session.execute(delete(CaseProgress).where(CaseProgress.submission == submission))
        return True


def _spent_s(session: Session, row: Submission) -> float:
    """Seconds since it was claimed."""
    return float(session.scalars(select(now())).one()) - (row.claimed_at or 0.0)


def _charge(session: Session, row: Submission, seconds: float) -> None:
    """Charge a submission's user; a rejudge is nobody's wish but the staff's."""
    if row.priority == INTERACTIVE:
        fairness.charge(session, row.user, seconds)


def _move(new: Status) -> Update:
    """An update to status `new`, of such rows only as may go there."""
    may = [str(old) for old, to in TRANSITIONS.items() if new in to]
    return (
        update(Submission)
        .where(Submission.status.in_(may))
        .values(status=str(new))
        .execution_options(synchronize_session=False)
    )


def _again(problem: int, version: str) -> Update:
    """Put what has a verdict into the queue once more."""
    return (
        _move(Status.QUEUED)
        .where(
            Submission.problem == problem,
            Submission.current_judgement.is_not(None),
            Submission.finished_at.is_not(None),
        )
        .values(
            version=version,
            priority=REJUDGE,
            queued_at=now(),
            claimed_at=None,
            finished_at=None,
            child_started=False,
            crashes=0,
            total=None,
        )
    )


def _is_of(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    """The row is still in the hands of that claim. By its seed too: in a database that was put back from a copy, a number
    may be another submission's."""
    return (
        Submission.id == claim.submission,
        Submission.seed == claim.seed,
        Submission.attempt == claim.attempt,
        Submission.status == Status.RUNNING,
    )


def _held(claim: Claim) -> Update:
    return update(Submission).where(*_is_of(claim)).execution_options(synchronize_session=False)


def _changed(session: Any, statement: Update) -> bool:
    return bool(session.execute(statement).rowcount)


def _given_up(row: Submission) -> dict[str, Json]:
    return system_error(row.problem, row.version, "worker_lost", crashes=row.crashes)


def system_error(problem: int, version: str, code: str, **params: Json) -> dict[str, Json]:
    """The verdict of a submission that could not be judged by a fault that is not its own."""
    return {
        "problem": problem,
        "version": version,
        "status": str(Status.SYSTEM_ERROR),
        "passed": 0,
        "total": 0,
        "time_ms": 0,
        "tier": "",
        "kernels": "",
        "versions": {},
        "cases": [],
        "message": {"code": code, "params": params},
        "diagnosis": [],
        "counterexample": None,
    }
