"""What can become of a submission or of one case: one enum, one table of transitions, used by every part."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Status of a submission; a case uses the final ones and `NOT_RUN`."""

    QUEUED = "queued"
    RUNNING = "running"
    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    RUNTIME_ERROR = "runtime_error"
    COMPILE_ERROR = "compile_error"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    SYSTEM_ERROR = "system_error"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"

    @property
    def is_final(self) -> bool:
        """True once nothing changes by itself any more: a judgement is appended, this status stays until somebody has it
        judged again."""
        return self not in (Status.QUEUED, Status.RUNNING)


VERDICTS = frozenset(s for s in Status if s.is_final and s not in (Status.CANCELLED, Status.NOT_RUN))

# RUNNING -> QUEUED is a lease that was lost or handed back; CANCELLED is the learner's own wish; from a verdict back to
# QUEUED leads a rejudge.
TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.RUNNING, Status.CANCELLED, Status.SYSTEM_ERROR}),
    Status.RUNNING: VERDICTS | {Status.QUEUED, Status.CANCELLED},
    **{s: frozenset({Status.QUEUED}) for s in VERDICTS},
    Status.CANCELLED: frozenset(),
    Status.NOT_RUN: frozenset(),
}


def check_transition(old: Status, new: Status) -> None:
    """Raise ValueError if a submission may not go from `old` to `new`."""
    if new not in TRANSITIONS[old]:
        raise ValueError(f"a submission that is {old} cannot become {new}")
