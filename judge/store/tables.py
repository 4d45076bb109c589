"""The tables of the judge. Times are seconds since 1970 (UTC) by the database's clock. Other features
(accounts, classes) add tables of their own to `Base.metadata`."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import JSON, Double, ForeignKey, Index, LargeBinary, MetaData, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from judge.core.status import Status
from judge.store.clock import now


class Base(DeclarativeBase):
    """Root of all tables; names of constraints are spelled out so that a migration can find them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar = {float: Double, bytes: LargeBinary, dict[str, Any]: JSON}


INTERACTIVE, REJUDGE = 0, 1  # priorities: somebody waits for the first


class Submission(Base):
    """One submission, and its place in the queue.

    Invariants
    - `status` is `running` exactly while `worker`, `claimed_at` and `lease_until` are set by the latest
      claim.
    - `attempt` grows by one with every claim and never otherwise: whoever holds an older number changes
      nothing.
    - `crashes` counts leases that ran out after a child had been started, nothing else.
    - `status` is final exactly when `finished_at` is set; for a verdict `current_judgement` then names its
      judgement. While it is judged again, `current_judgement` keeps naming the one that counts so far.
    - `created_at` is when it arrived and never changes; `queued_at` is when it was last put into the queue.
    - `charged_s` is what its user's share was charged at the latest claim.
    - an id is never given twice, also not that of a submission which was deleted: links, the audit log and late workers
      name submissions by it.
    - `seed` leaves the database for a worker only.
    """

    __tablename__ = "submissions"

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(String(64))
    problem: Mapped[int]
    version: Mapped[str] = mapped_column(String(16))
    source: Mapped[bytes]
    public_only: Mapped[bool] = mapped_column(default=False)
    priority: Mapped[int] = mapped_column(default=INTERACTIVE)
    seed: Mapped[bytes] = mapped_column(LargeBinary(16))
    status: Mapped[str] = mapped_column(String(16), default=str(Status.QUEUED))
    created_at: Mapped[float] = mapped_column(default=now())
    queued_at: Mapped[float] = mapped_column(default=now())
    claimed_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    attempt: Mapped[int] = mapped_column(default=0)
    worker: Mapped[str | None] = mapped_column(String(128))
    lease_until: Mapped[float | None]
    child_started: Mapped[bool] = mapped_column(default=False)
    crashes: Mapped[int] = mapped_column(default=0)
    charged_s: Mapped[float] = mapped_column(default=0.0)
    total: Mapped[int | None]
    current_judgement: Mapped[int | None] = mapped_column(ForeignKey("judgements.id", use_alter=True))

    __table_args__ = (
        Index(None, "status", "id"),
        Index(None, "status", "lease_until"),
        Index(None, "user", "problem", "id"),
        {"sqlite_autoincrement": True},
    )


class Share(Base):
    """How much judging a user has been given: `virtual_s`, in seconds (`fairness`)."""

    __tablename__ = "shares"

    user: Mapped[str] = mapped_column(String(64), primary_key=True)
    virtual_s: Mapped[float]


class Presence(Base):
    """A worker that is there, or was until `seen_at` (`presence`)."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    tier: Mapped[str] = mapped_column(String(16))
    slots: Mapped[int]
    running: Mapped[int]
    started_at: Mapped[float]
    seen_at: Mapped[float]


class Judgement(Base):
    """One verdict. Append-only: a rejudge adds a row and moves the submission's pointer."""

    __tablename__ = "judgements"

    id: Mapped[int] = mapped_column(primary_key=True)
    submission: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    attempt: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    passed: Mapped[int]
    total: Mapped[int]
    tier: Mapped[str] = mapped_column(String(16))
    verdict: Mapped[dict[str, Any]]
    created_at: Mapped[float] = mapped_column(default=now())
    waited_s: Mapped[float]
    judged_s: Mapped[float]


class CaseProgress(Base):
    """One case of a running submission, for those who watch. Gone once the verdict, which has them all, is
    there."""

    __tablename__ = "cases"

    id: Mapped[int] = mapped_column(primary_key=True)
    submission: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    seq: Mapped[int]
    result: Mapped[dict[str, Any]]

    __table_args__ = (UniqueConstraint("submission", "attempt", "seq"),)
