"""The heap and the sort behind schedules: right, and with ties as libstdc++ has them."""

from __future__ import annotations

import pytest
from fake_kernels.schedule import order
from fake_kernels.schedule.order import CostHeap, Heap, _sort_by_heap, sort
from hypothesis import given, settings
from hypothesis import strategies as st

GOLDEN_TWENTY = [10, 19, 18, 17, 16, 15, 14, 13, 12, 11, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1]
GOLDEN_MIXED = [0, 3, 21, 6, 18, 9, 15, 12, 1, 22, 19, 16, 13, 10, 7, 4, 11, 14, 8, 17, 5, 20, 2, 23]
GOLDEN_CTAS = [0, 2, 6, 8, 5, 1, 4, 3, 7, 0, 6, 3, 7, 2, 8, 4, 5, 1, 0, 3]
GOLDEN_KILLER = 18052538

KEYS = st.lists(st.integers(0, 5), max_size=80)


def by_key(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[0]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(KEYS)
def test_sort_sorts_and_loses_nothing(keys: list[int]) -> None:
    items = [(key, i) for i, key in enumerate(keys)]
    sort(items, by_key)
    assert [key for key, _ in items] == sorted(keys)
    assert sorted(i for _, i in items) == list(range(len(keys)))


def test_sort_of_equal_keys_is_that_of_libstdcxx() -> None:
    """Stable up to 16 elements; from 17 on quicksort swaps what is equal. From a C++ program."""
    for size in (1, 16):
        items = [(0, i) for i in range(size)]
        sort(items, by_key)
        assert [i for _, i in items] == list(range(size))
    items = [(0, i) for i in range(20)]
    sort(items, by_key)
    assert [i for _, i in items] == GOLDEN_TWENTY
    mixed = [((i * 7) % 3, i) for i in range(24)]
    sort(mixed, by_key)
    assert [i for _, i in mixed] == GOLDEN_MIXED


def test_sort_falls_back_to_a_heap_when_the_cuts_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence against the median of three, long enough to use up the depth; from a C++ program."""
    half = 200
    keys = [0] * (2 * half)
    for i in range(1, half + 1):
        if i % 2:
            keys[i - 1], keys[i] = i // 2, (half + i) // 2
        keys[half + i - 1] = i
    items = [(key, i) for i, key in enumerate(keys)]
    calls = []
    monkeypatch.setattr(order, "_sort_by_heap", lambda *args: calls.append(_sort_by_heap(*args)))
    sort(items, by_key)
    assert calls
    assert [key for key, _ in items] == sorted(keys)
    assert sum((place + 1) * i for place, (_, i) in enumerate(items)) == GOLDEN_KILLER


@settings(max_examples=60, derandomize=True, deadline=None)
@given(KEYS, KEYS)
def test_heap_gives_the_least(first: list[int], second: list[int]) -> None:
    heap: Heap[int] = Heap(lambda a, b: a > b, [])
    for key in first:
        heap.push(key)
    held = sorted(first)
    for key in second:
        heap.push(key)
        held = sorted([*held, key])
        assert heap.pop() == held.pop(0)
    assert [heap.pop() for _ in held] == held


def test_cost_heap_gives_ctas_as_libstdcxx_pops_equal_ones() -> None:
    """Nine CTAs, tiles of equal cost: who comes next. From a C++ program."""
    heap = CostHeap(9)
    assert [heap.take(128, 1000) for _ in range(20)] == GOLDEN_CTAS


def test_costs_are_rounded_as_float32_is() -> None:
    """Above 2^24 a cost of 1 is lost, so that a CTA stays the least."""
    heap = CostHeap(2)
    assert heap.take(0, 1 << 24) == 0
    assert heap.take(0, (1 << 24) + 2) == 1
    assert [heap.take(0, 1) for _ in range(3)] == [0, 0, 0]
