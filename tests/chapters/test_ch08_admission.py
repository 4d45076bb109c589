"""Chapter 8: pages are promised before a request starts, handed out as it grows, and given back once."""

from collections.abc import Callable
from typing import Any

import pytest

Drive = Callable[..., Any]


def prompt(length: int, first: int = 10) -> list[int]:
    return list(range(first, first + length))


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_request_waits_until_its_last_page_can_be_promised(drive: Drive, page_size: int) -> None:
    scheduler = drive(page_size=page_size, num_page_override=32 // page_size)
    scheduler.ask(0, prompt(9), 8)  # 16 tokens of KV in the end
    scheduler.ask(1, prompt(12), 6)  # 17
    scheduler.step()
    assert [one.uid for one in scheduler.prefill_manager.pending] == [1]
    assert scheduler.decode_manager.reserved_pages == 16 // page_size - -(-9 // page_size)
    scheduler.run()
    assert [len(scheduler.told[uid]) for uid in (0, 1)] == [8, 6]


def test_who_waits_is_not_overtaken(drive: Drive) -> None:
    scheduler = drive(num_page_override=32)
    scheduler.ask(0, prompt(9), 8)
    scheduler.ask(1, prompt(20), 6)
    scheduler.ask(2, prompt(2), 2)  # would fit now
    scheduler.step()
    assert [one.uid for one in scheduler.prefill_manager.pending] == [1, 2]
    scheduler.run()
    assert set(scheduler.ended) == {0, 1, 2}


def test_what_can_never_fit_is_refused_at_once(drive: Drive) -> None:
    scheduler = drive(num_page_override=8, page_size=4)
    scheduler.ask(0, prompt(20), 8)
    scheduler.ask(1, prompt(32), 1)
    scheduler.step()
    assert scheduler.ended[1].finish_reason == "error"
    assert "32 tokens" in scheduler.ended[1].error
    scheduler.run()
    assert scheduler.ended[0].finish_reason == "length"


def test_pages_are_handed_out_when_they_are_needed(drive: Drive) -> None:
    scheduler = drive(page_size=4)
    cache = scheduler.cache_manager
    scheduler.ask(0, prompt(6), 7)
    free = []
    for _ in range(7):
        scheduler.step()
        free.append(cache.free_pages)
    # 6 tokens take 2 of 16 pages; the 9th token takes the third. The last one sampled needs no place.
    assert free == [14, 14, 14, 13, 13, 13, 16]


@pytest.mark.parametrize("steps", range(5))
def test_everything_is_given_back_once(drive: Drive, steps: int) -> None:
    scheduler = drive(page_size=4, num_page_override=8)
    scheduler.ask(0, prompt(9), 6)
    scheduler.ask(1, prompt(11), 6)
    for _ in range(steps):
        scheduler.step()
    scheduler.abort(0)
    scheduler.abort(1)
    scheduler.run()  # all pages and rows are free at its end
    assert scheduler.cache_manager.free_pages == 8


def test_asking_for_more_than_there_is_is_an_error(drive: Drive) -> None:
    scheduler = drive()
    with pytest.raises(RuntimeError, match="65 pages are wanted, 64 are free and 0 evictable"):
        scheduler.cache_manager.allocate(65)


def test_the_check_finds_a_page_in_two_places_and_in_none(drive: Drive) -> None:
    scheduler = drive(check_pages=False)
    cache = scheduler.cache_manager
    scheduler.ask(0, prompt(5), 6)
    scheduler.step()
    scheduler.check_integrity()
    lost = cache.allocate(1)
    with pytest.raises(RuntimeError, match="belong to nobody"):
        scheduler.check_integrity()
    cache._give_back(lost)
    scheduler.check_integrity()
    cache._give_back(lost)
    with pytest.raises(RuntimeError, match="belongs to the free pages and to the free pages"):
        scheduler.check_integrity()
