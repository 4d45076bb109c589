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
    """The account of one submission. Invariant: `left_s` only falls.

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
        try:
            with _timer(min(PIECE_S, self.left_s)):
                yield
        finally:
            self.left_s -= time.process_time() - start


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer"):  # Windows: the time is counted, and work stops between two pieces
        yield
        return
    before = signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _ring(number: int, frame: Any) -> None:
    raise Impatient("the time is used up")
