"""The radix tree by itself: matching, splitting, locks, eviction, and a random walk against a plain model."""

import random

import pytest
import torch

from minisgl.kvcache import create_prefix_cache
from minisgl.kvcache.radix_cache import RadixPrefixCache

CPU = torch.device("cpu")


def ids(*tokens: int) -> torch.Tensor:
    return torch.tensor(tokens, dtype=torch.int32)


def places(first: int, count: int) -> torch.Tensor:
    return torch.arange(first, first + count, dtype=torch.int32)


def shape(cache: RadixPrefixCache) -> list[tuple[list[int], list[int], int, int]]:
    """Every node: tokens, places, locks, last use."""
    return [(node.key.tolist(), node.value.tolist(), node.locks, node.used) for node in cache.nodes()]


def tree(page_size: int = 1) -> RadixPrefixCache:
    cache = create_prefix_cache("radix", page_size, CPU)
    assert isinstance(cache, RadixPrefixCache)
    return cache


def test_what_was_inserted_is_matched_as_far_as_it_agrees() -> None:
    cache = tree()
    cache.insert_prefix(ids(1, 2, 3, 4), places(10, 4))
    for sought, found in [((1, 2, 3, 4, 5), 4), ((1, 2, 9), 2), ((1,), 1), ((2, 1), 0), ((), 0)]:
        handle = cache.match_prefix(ids(*sought))
        assert handle.cached_len == found
        assert handle.matched_indices().tolist() == list(range(10, 10 + found))


def test_matching_does_not_change_the_tree() -> None:
    """Bug: a match that ends inside a node splits it, or makes it look recently used."""
    cache = tree()
    cache.insert_prefix(ids(1, 2, 3, 4), places(10, 4))
    cache.insert_prefix(ids(1, 2, 7), places(20, 3))
    before = shape(cache)
    for sought in ((1, 2, 3, 9), (1,), (1, 2, 7, 7), (8,)):
        cache.match_prefix(ids(*sought))
    assert shape(cache) == before


def test_a_sequence_known_already_keeps_its_older_places() -> None:
    cache = tree()
    cache.insert_prefix(ids(1, 2, 3), places(10, 3))
    known, handle = cache.insert_prefix(ids(1, 2, 3, 4), places(20, 4))
    assert known == 3
    assert handle.matched_indices().tolist() == [10, 11, 12, 23]
    assert cache.size_info() == (4, 0)


def test_places_are_copied() -> None:
    """Bug: the tree keeps a view of a page-table row, and the row's next owner rewrites it."""
    cache = tree()
    row = places(10, 3)
    cache.insert_prefix(ids(1, 2, 3), row)
    row.zero_()
    assert cache.match_prefix(ids(1, 2, 3)).matched_indices().tolist() == [10, 11, 12]


def test_whole_pages_only() -> None:
    cache = tree(page_size=4)
    known, handle = cache.insert_prefix(ids(*range(10)), places(40, 10))
    assert (known, handle.cached_len) == (0, 8)
    assert cache.match_prefix(ids(*range(7))).cached_len == 4
    assert cache.match_prefix(ids(0, 1, 2)).cached_len == 0
    # Parts within the second page: the border is the page's, not the token's.
    known, handle = cache.insert_prefix(ids(*range(6), 9, 9, 9, 9, 9, 9), places(80, 12))
    assert (known, handle.cached_len) == (4, 12)
    assert handle.matched_indices().tolist() == [40, 41, 42, 43, *range(84, 92)]
    cache.check_integrity()


def test_eviction_takes_the_leaf_that_was_used_longest_ago() -> None:
    cache = tree()
    cache.insert_prefix(ids(1, 2), places(10, 2))
    cache.insert_prefix(ids(3, 4), places(20, 2))
    cache.insert_prefix(ids(1, 2, 5), places(10, 3))
    handle = cache.match_prefix(ids(3, 4))
    cache.lock(handle)
    cache.unlock(handle)  # now 1 2 5 is the oldest, and then 1 2, whose leaf it was
    assert cache.evict(1).tolist() == [12]
    assert cache.evict(1).tolist() == [10, 11]
    assert cache.evict(2).tolist() == [20, 21]
    assert cache.size_info() == (0, 0)
    with pytest.raises(RuntimeError, match="1 tokens are to be evicted, but only 0"):
        cache.evict(1)


def test_what_is_locked_stays() -> None:
    cache = tree()
    cache.insert_prefix(ids(1, 2, 3, 4), places(10, 4))
    handle = cache.match_prefix(ids(1, 2, 9))
    cache.lock(handle)
    cache.lock(handle)
    assert cache.size_info() == (2, 2)
    assert cache.evict(2).tolist() == [12, 13]
    cache.unlock(handle)
    with pytest.raises(RuntimeError):
        cache.evict(1)
    cache.unlock(handle)
    assert cache.evict(1).tolist() == [10, 11]


def test_a_handle_survives_splits_above_and_below() -> None:
    """Bug: a node is split under a locked handle, and unlocking frees half of the path or none of it."""
    cache = tree()
    _, long = cache.insert_prefix(ids(1, 2, 3, 4, 5, 6), places(10, 6))
    cache.lock(long)
    short = cache.match_prefix(ids(1, 2, 3, 4))
    cache.lock(short)
    cache.insert_prefix(ids(1, 2, 9), places(10, 3))
    cache.check_integrity()
    assert long.matched_indices().tolist() == list(range(10, 16))
    assert short.matched_indices().tolist() == list(range(10, 14))
    cache.unlock(long)
    assert cache.size_info() == (3, 4)
    cache.unlock(short)
    assert cache.size_info() == (7, 0)
    cache.check_integrity()


def test_unlocking_what_is_not_locked_is_an_error() -> None:
    cache = tree()
    _, handle = cache.insert_prefix(ids(1, 2), places(10, 2))
    with pytest.raises(RuntimeError, match="was not locked"):
        cache.unlock(handle)


@pytest.mark.parametrize("page_size", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_random_walk(page_size: int, seed: int) -> None:
    """Against a dictionary from sequences to places. Few tokens, so that everything has beginnings in common."""
    rng = random.Random(seed)
    cache = tree(page_size)
    known: dict[tuple[int, ...], tuple[int, ...]] = {}  # every cached beginning -> places of its last page
    held: list[tuple[object, tuple[int, ...]]] = []
    fresh = 0

    def pages_of(sequence: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [sequence[:end] for end in range(page_size, len(sequence) + 1, page_size)]

    for step in range(1500):
        sequence = tuple(rng.randrange(3) for _ in range(rng.randrange(0, 6 * page_size)))
        action = rng.random()
        if action < 0.4:
            mine = places(fresh, len(sequence))
            fresh += len(sequence)
            before = [one for one in pages_of(sequence) if one in known]
            result = cache.insert_prefix(ids(*sequence), mine)
            assert result.already_cached == len(before) * page_size
            for one in pages_of(sequence)[len(before) :]:
                known[one] = tuple(mine[len(one) - page_size : len(one)].tolist())
        elif action < 0.7:
            handle = cache.match_prefix(ids(*sequence))
            matched = [one for one in pages_of(sequence) if one in known]
            assert handle.cached_len == len(matched) * page_size
            assert handle.matched_indices().tolist() == [place for one in matched for place in known[one]]
            if rng.random() < 0.5 and len(held) < 6:
                cache.lock(handle)
                held.append((handle, sequence[: handle.cached_len]))
        elif action < 0.9 and held:
            handle, sequence = held.pop(rng.randrange(len(held)))
            assert handle.matched_indices().tolist() == [p for one in pages_of(sequence) for p in known[one]]
            cache.unlock(handle)
        elif evictable := cache.size_info().evictable:
            gone = set(cache.evict(rng.randrange(1, evictable + 1)).tolist())
            locked = {one for _, sequence in held for one in pages_of(sequence)}
            for one in [one for one, where in known.items() if set(where) & gone]:
                assert one not in locked
                assert set(known.pop(one)) <= gone
        if step % 10 == 0:
            cache.check_integrity()
            assert sorted(cache.cached_indices().tolist()) == sorted(p for w in known.values() for p in w)
    assert len(cache._heap) < 500, "old entries of the heap pile up"
