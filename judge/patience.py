"""How much of its time the checker gives to one submission. It answers everybody, one request after another: a submission
whose outputs or calls are costly to look at would otherwise make all others wait.

A limit between two pieces of work is not enough, since one piece may have no end (a loop over a number that the submission
chose); so the work itself is interrupted, by a timer. All of it is CPU time of this process: on a busy machine a good
submission must not lose its verdict, and nothing that the checker does waits.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

SECONDS = (
    5.0  # of CPU, for all outputs and calls of one submission: many times what the largest honest one takes
)
PIECE_S = 2.0  # for one of them: as long as that everybody waits
AGAIN_S = 0.5  # how soon the timer rings again, should what it interrupts have swallowed the exception


class Impatient(Exception):
    """The time for this submission is used up."""


class Patience:
    """The account of one submission. Invariants: `left_s` only falls, and after a ring the time that the timer was set to
    is used up, whatever the clock says: the two count by different ticks.

    It counts only where it is `enforced`: in the checker, once that has imported what checking needs (an import must not be
    cut in two). Tools that look at outputs in a process of their own have as long as they like."""

    enforced: ClassVar[bool] = False

    def __init__(self, seconds: float = SECONDS) -> None:
        self.left_s = seconds

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Do a piece of work on this account. Raises Impatient before it begins if nothing is left, and in its midst after
        PIECE_S seconds, or when nothing is left any more. Code in C is interrupted when it returns."""
        if not self.enforced:
            yield
            return
        if self.left_s <= 0:
            raise Impatient("no time is left")
        start = time.process_time()
        allowed_s = min(PIECE_S, self.left_s)
        bell = _Bell()
        try:
            with bell.set(allowed_s):
                yield
        finally:
            used_s = time.process_time() - start
            self.left_s -= max(used_s, allowed_s) if bell.rang else used_s


class _Bell:
    """Interrupts what the main thread does. `rang` says that it did, even if what it interrupted swallowed the exception."""

    def __init__(self) -> None:
        self.rang = False

    @contextmanager
    def set(self, seconds: float) -> Iterator[None]:
        if not hasattr(signal, "setitimer"):
            yield  # Windows: the time is counted, and work stops between two pieces
            return
        before = signal.signal(signal.SIGPROF, self._ring)
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def _ring(self, number: int, frame: Any) -> None:
        self.rang = True
        raise Impatient("the time is used up")
