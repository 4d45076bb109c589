"""One submission's share of the checker's time."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable

import pytest

from judge.patience import AGAIN_S, Impatient, Patience


@pytest.fixture(autouse=True)
def enforced(monkeypatch):
    monkeypatch.setattr(Patience, "enforced", True)


def do(patience: Patience, work: Callable[[], object]) -> None:
    with patience.spend():
        work()


def loop() -> None:
    while True:
        pass


def busy(seconds: float) -> None:
    """Spend that much CPU time."""
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        pass


def test_a_busy_machine_costs_nobody_a_verdict():
    patience = Patience(0.05)
    do(patience, lambda: time.sleep(0.2))  # as when others have the processor
    assert patience.left_s > 0.04


def test_work_without_end_is_interrupted():
    patience = Patience(0.1)
    with pytest.raises(Impatient):
        do(patience, loop)
    assert patience.left_s <= 0
    with pytest.raises(Impatient):
        do(patience, lambda: pytest.fail("nothing is left: this must not begin"))


@pytest.mark.parametrize("swallow", [(), (Impatient,)])
def test_who_was_interrupted_has_nothing_left_although_the_clock_lags(monkeypatch, swallow):
    """The timer counts by the kernel's ticks, the clock does not; here it lags as far as a clock can."""
    monkeypatch.setattr("judge.patience.time.process_time", lambda: 0.0)

    def work() -> None:
        with contextlib.suppress(*swallow):
            loop()

    patience = Patience(0.05)
    with contextlib.suppress(Impatient):
        do(patience, work)
    assert patience.left_s == 0.0
    with pytest.raises(Impatient):
        do(patience, lambda: pytest.fail("nothing is left: this must not begin"))


def test_work_that_swallows_the_interruption_is_interrupted_again():
    def stubborn() -> None:
        with contextlib.suppress(Impatient):
            loop()
        loop()

    start = time.process_time()
    with pytest.raises(Impatient):
        do(Patience(0.05), stubborn)
    # The timer counts in ticks and may be early by some: the first ring came after 0.05.
    assert time.process_time() - start > AGAIN_S / 2


def test_time_adds_up_and_nothing_rings_afterwards():
    patience = Patience(0.3)
    for _ in range(2):
        with patience.spend():
            busy(0.05)
    assert 0.0 < patience.left_s <= 0.2
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    busy(0.35)


def test_what_the_work_raises_comes_through_and_is_paid_for():
    def fails() -> None:
        busy(0.02)
        raise KeyError

    patience = Patience(5.0)
    with pytest.raises(KeyError):
        do(patience, fails)
    assert patience.left_s <= 4.98


def test_tools_have_as_long_as_they_like(monkeypatch):
    monkeypatch.setattr(Patience, "enforced", False)
    patience = Patience(0.05)
    do(patience, lambda: busy(0.1))
    assert patience.left_s == 0.05


def test_one_piece_may_not_take_all(monkeypatch):
    monkeypatch.setattr("judge.patience.PIECE_S", 0.05)
    patience = Patience(5.0)
    with pytest.raises(Impatient):
        do(patience, loop)
    assert 4.0 < patience.left_s < 5.0
