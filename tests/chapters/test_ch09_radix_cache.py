"""Chapter 9: what was computed is found again, in whole pages, and evicted when nobody reads it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from minisgl.kvcache import create_prefix_cache

Drive = Callable[..., Any]
PROMPT = [40, 71, 82, 303, 9, 17, 256, 301, 444, 120, 33, 78]


def ids(*tokens: int) -> torch.Tensor:
    return torch.tensor(tokens, dtype=torch.int32)


def places(first: int, count: int) -> torch.Tensor:
    return torch.arange(first, first + count, dtype=torch.int32)


def test_match_split_insert() -> None:
    tree: Any = create_prefix_cache("radix", 2, torch.device("cpu"))
    tree.insert_prefix(ids(7, 8, 9, 4, 1, 2), places(0, 6))
    known, handle = tree.insert_prefix(ids(7, 8, 9, 4, 5, 5, 6), places(10, 7))
    assert (known, handle.cached_len) == (4, 6)
    assert handle.matched_indices().tolist() == [0, 1, 2, 3, 14, 15]
    assert [node.key.tolist() for node in tree.nodes()[1:]] == [[7, 8, 9, 4], [1, 2], [5, 5]]
    assert tree.match_prefix(ids(7, 8, 9, 0)).cached_len == 2
    tree.check_integrity()


def test_matching_changes_nothing() -> None:
    tree: Any = create_prefix_cache("radix", 1, torch.device("cpu"))
    tree.insert_prefix(ids(1, 2, 3), places(0, 3))
    before = [(node.key.tolist(), node.locks, node.used) for node in tree.nodes()]
    tree.match_prefix(ids(1, 2, 9))
    assert [(node.key.tolist(), node.locks, node.used) for node in tree.nodes()] == before


def test_least_recently_used_leaves_go_first_and_locked_ones_stay() -> None:
    tree: Any = create_prefix_cache("radix", 1, torch.device("cpu"))
    for first, tokens in ((0, (1, 2)), (10, (3, 4)), (20, (5, 6))):
        tree.insert_prefix(ids(*tokens), places(first, 2))
    handle = tree.match_prefix(ids(1, 2))
    tree.lock(handle)
    assert tree.size_info() == (4, 2)
    assert tree.evict(1).tolist() == [10, 11]
    assert tree.evict(1).tolist() == [20, 21]
    with pytest.raises(RuntimeError, match="only 0 are not locked"):
        tree.evict(1)
    tree.unlock(handle)
    assert tree.evict(2).tolist() == [0, 1]


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("overlap", [False, True])
def test_a_prompt_seen_before_computes_its_last_page_only(
    drive: Drive, page_size: int, overlap: bool
) -> None:
    scheduler = drive(cache_type="radix", page_size=page_size, overlap=overlap)
    scheduler.ask(0, PROMPT, 4)
    scheduler.run()
    scheduler.ask(1, PROMPT, 4)
    scheduler.ask(2, [*PROMPT[:7], 9, 9], 4)
    scheduler.run()
    assert scheduler.told[1] == scheduler.told[0]
    cached = [scheduler.ended[uid].cached_tokens for uid in range(3)]
    assert cached == [0, 11 // page_size * page_size, 7 // page_size * page_size]
    fresh = drive(cache_type="naive", page_size=page_size)
    fresh.ask(2, [*PROMPT[:7], 9, 9], 4)
    fresh.run()
    assert fresh.told[2] == scheduler.told[2]


@pytest.mark.parametrize("page_size", [1, 4])
def test_two_equal_prompts_of_one_step_keep_one_copy(drive: Drive, page_size: int) -> None:
    scheduler = drive(cache_type="radix", page_size=page_size)
    for uid in (0, 1):
        scheduler.ask(uid, PROMPT, 5)
    scheduler.step()
    first, second = (
        scheduler.engine.page_table[req.table_idx, : len(PROMPT)].tolist()
        for req in scheduler.decode_manager.running
    )
    assert first == second
    assert scheduler.cache_manager.free_pages == (64 - len(PROMPT)) // page_size
    scheduler.run()
    assert scheduler.told[0] == scheduler.told[1]
