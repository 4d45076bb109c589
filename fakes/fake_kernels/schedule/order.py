"""The C++ standard library's heap and sort, as far as they decide who comes first among equals.

Planners hand out work by a heap and sort requests by length. Equal keys are the common case (equal
lengths, a heap of zeros), the standard leaves their order open, and so a schedule is only the real one if
ties fall as they do in libstdc++, which the library's wheels are built with.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
Before = Callable[[T, T], bool]
"""The comparison that C++ gets: for a heap it puts the largest first, for a sort it says "stands before"."""

_SMALL = 16
"""Below this many elements libstdc++ sorts by insertion (bits/stl_algo.h, _S_threshold)."""

_FLOAT32 = struct.Struct("f")

_EXACT = float(1 << 24)
"""Sums of whole numbers up to here are exact in float32."""


class Heap(Generic[T]):
    """std::push_heap and std::pop_heap on a vector (bits/stl_heap.h)."""

    def __init__(self, before: Before[T], items: list[T]) -> None:
        self._before = before
        self.items = items

    def push(self, item: T) -> None:
        """Append and let it rise."""
        self.items.append(item)
        self._rise(len(self.items) - 1, 0, item)

    def pop(self) -> T:
        """The top; the last element sinks into its place."""
        top, last = self.items[0], self.items.pop()
        if self.items:
            self.sink(0, len(self.items), last)
        return top

    def sink(self, hole: int, size: int, item: T) -> None:
        """Move the hole down to a leaf along the greater children, then let `item` rise from there."""
        items, before, top, child = self.items, self._before, hole, hole
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if before(items[child], items[child - 1]):
                child -= 1
            items[hole] = items[child]
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * child + 1
            items[hole] = items[child]
            hole = child
        self._rise(hole, top, item)

    def _rise(self, hole: int, top: int, item: T) -> None:
        items, before = self.items, self._before
        while hole > top:
            parent = (hole - 1) // 2
            if not before(items[parent], item):
                break
            items[hole] = items[parent]
            hole = parent
        items[hole] = item


class CostHeap:
    """A CTA for each piece of work: the one with the least cost so far (attention/heap.h, MinHeap).

    Costs are float32, as there: above 2^24 they are rounded.
    """

    def __init__(self, ctas: int) -> None:
        self._heap: Heap[tuple[int, float]] = Heap(lambda a, b: a[1] > b[1], [(i, 0.0) for i in range(ctas)])

    def take(self, rows: int, kv_len: int) -> int:
        """The CTA that gets a tile of `rows` over `kv_len` tokens; it costs 2 * rows + kv_len."""
        cta, so_far = self._heap.pop()
        cost = so_far + (2 * rows + kv_len)
        self._heap.push((cta, cost if cost <= _EXACT else _FLOAT32.unpack(_FLOAT32.pack(cost))[0]))
        return cta


def sort(items: list[T], before: Before[T]) -> None:
    """std::sort in place: quicksort by a median of three down to 16 elements, then insertion (bits/stl_algo.h)."""
    if items:
        _partition_all(items, 0, len(items), 2 * (len(items).bit_length() - 1), before)
        _insert_all(items, before)


def _partition_all(items: list[T], first: int, last: int, depth: int, before: Before[T]) -> None:
    while last - first > _SMALL:
        if depth == 0:
            _sort_by_heap(items, first, last, before)
            return
        depth -= 1
        cut = _partition(items, first, last, before)
        _partition_all(items, cut, last, depth, before)
        last = cut


def _partition(items: list[T], first: int, last: int, before: Before[T]) -> int:
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if before(items[a], items[b]):
        median = b if before(items[b], items[c]) else c if before(items[a], items[c]) else a
    else:
        median = a if before(items[a], items[c]) else c if before(items[b], items[c]) else b
    items[first], items[median] = items[median], items[first]
    pivot, low, high = items[first], first + 1, last
    while True:
        while before(items[low], pivot):
            low += 1
        high -= 1
        while before(pivot, items[high]):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1


def _sort_by_heap(items: list[T], first: int, last: int, before: Before[T]) -> None:
    part = Heap(before, items[first:last])
    size = last - first
    for parent in range((size - 2) // 2, -1, -1):
        part.sink(parent, size, part.items[parent])
    for end in range(size - 1, 0, -1):
        item = part.items[end]
        part.items[end] = part.items[0]
        part.sink(0, end, item)
    items[first:last] = part.items


def _insert_all(items: list[T], before: Before[T]) -> None:
    for i in range(1, len(items)):
        item = items[i]
        if before(item, items[0]) and i < _SMALL:
            items[1 : i + 1] = items[:i]
            items[0] = item
            continue
        hole = i
        while before(item, items[hole - 1]):
            items[hole] = items[hole - 1]
            hole -= 1
        items[hole] = item
