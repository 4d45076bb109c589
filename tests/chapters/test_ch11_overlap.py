"""Chapter 11: a step ahead of what the host knows, and nobody outside can tell."""

from collections.abc import Callable
from typing import Any

import pytest

Drive = Callable[..., Any]
A, B = [40, 71, 82, 303, 9], [17, 256, 301]


@pytest.fixture
def stop(drive: Drive) -> tuple[list[int], int]:
    """What A says, and the place of a token in it that was not said before."""
    scheduler = drive()
    scheduler.ask(0, A, 8)
    scheduler.run()
    said = scheduler.told[0]
    return said, next(i for i in range(2, 8) if said[i] not in said[:i])


@pytest.mark.parametrize("max_tokens", [1, 2, 5])
def test_the_last_token_is_the_last(drive: Drive, stop: tuple[list[int], int], max_tokens: int) -> None:
    scheduler = drive(overlap=True)
    scheduler.ask(0, A, max_tokens)
    scheduler.ask(1, B, 8)
    scheduler.run()
    assert scheduler.told[0] == stop[0][:max_tokens]
    assert scheduler.ended[0].finish_reason == "length"


def test_a_batch_is_in_flight_while_the_next_is_launched(drive: Drive) -> None:
    scheduler = drive(overlap=True)
    scheduler.ask(0, A, 3)
    told = []
    for _ in range(4):
        scheduler.step()
        told.append(len(scheduler.told.get(0, [])))
    assert told == [0, 1, 2, 3]
    assert not scheduler.has_work


def test_the_extra_step_is_not_heard_and_its_row_is_kept(drive: Drive, stop: tuple[list[int], int]) -> None:
    said, place = stop
    scheduler = drive(overlap=True, max_running_req=1)
    scheduler.ask(0, A, 8, stop_token_ids=[said[place]])
    scheduler.ask(1, B, 2)
    while 0 not in scheduler.ended:
        scheduler.step()
    assert scheduler.table_manager.available_size == 0
    assert scheduler.cache_manager.free_pages < 64
    scheduler.run()
    assert scheduler.told[0] == said[: place + 1]
    assert len(scheduler.told[1]) == 2


@pytest.mark.parametrize("steps", range(1, 7))
def test_an_abort_with_a_batch_in_flight(drive: Drive, stop: tuple[list[int], int], steps: int) -> None:
    scheduler = drive(overlap=True, max_running_req=2)
    scheduler.ask(0, A, 6)
    scheduler.ask(1, B, 6)
    scheduler.ask(2, A, 6)  # gets a row when one is free
    for _ in range(steps):
        scheduler.step()
    scheduler.abort(0)
    scheduler.run()
    assert scheduler.told[0] == stop[0][: len(scheduler.told[0])]
    assert scheduler.told[2] == stop[0][:6]
    assert scheduler.ended[2].finish_reason == "length"


def test_a_seed_means_the_same_with_and_without(drive: Drive) -> None:
    told = []
    for overlap in (False, True):
        scheduler = drive(overlap=overlap)
        scheduler.ask(0, A, 6, temperature=1.5, seed=3, frequency_penalty=1.0)
        scheduler.ask(1, B, 4)
        scheduler.run()
        told.append(scheduler.told)
    assert told[0] == told[1]
