import pytest
import torch

from minisgl.kernel import embedding_lookup, store_kv
from minisgl.kvcache import PREFIX_CACHES, create_kvcache_pool
from minisgl.kvcache.mha_pool import MHAKVCache
from minisgl.models.config import ModelConfig
from minisgl.scheduler.table import TableManager
from minisgl.utils.misc import align_down, align_up, div_ceil, div_even, local_kv_heads

CPU = torch.device("cpu")


def model_config(**changes: object) -> ModelConfig:
    return ModelConfig.from_hf(
        {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 100,
            "max_position_embeddings": 64,
            **changes,
        }
    )


@pytest.mark.usefixtures("single_rank")
def test_a_token_of_qwen3_0_6b_takes_114688_bytes() -> None:
    assert MHAKVCache.bytes_per_token(model_config(), torch.bfloat16) == 114_688


@pytest.mark.usefixtures("single_rank")
@pytest.mark.parametrize("page_size", [1, 4])
def test_keys_and_values_land_at_their_token_positions(page_size: int) -> None:
    config = model_config(num_hidden_layers=3, num_key_value_heads=2, head_dim=4)
    pool = create_kvcache_pool(config, 16 // page_size, page_size, torch.float32, CPU)
    assert pool.k_cache(0).shape == (16 // page_size, page_size, 2, 4)
    assert (pool.num_pages, pool.page_size, pool.dtype) == (16 // page_size, page_size, torch.float32)
    at = torch.tensor([9, 2, 15], dtype=torch.int32)
    # Views of a larger tensor, as the layers hand them over.
    k, v = torch.randn(3, 4, 4).split([2, 2], dim=1)
    pool.store_kv(k, v, at, layer_id=1)
    for cache, written in ((pool.k_cache(1), k), (pool.v_cache(1), v)):
        tokens = cache.flatten(0, 1)
        assert torch.equal(tokens[at.long()], written)
        assert tokens.abs().sum() == written.abs().sum()
    assert pool.k_cache(0).abs().sum() == pool.v_cache(2).abs().sum() == 0
    assert pool.k_cache(1).stride() == pool.v_cache(1).stride()


def test_store_kv_refuses_what_does_not_fit() -> None:
    cache = torch.zeros(4, 1, 2, 4)
    with pytest.raises((RuntimeError, IndexError)):
        store_kv(
            cache,
            cache.clone(),
            torch.tensor([4], dtype=torch.int32),
            torch.ones(1, 2, 4),
            torch.ones(1, 2, 4),
        )


def test_embedding_lookup_over_ranks_adds_up() -> None:
    weight = torch.randn(6, 4)
    ids = torch.tensor([0, 5, 3, 2], dtype=torch.int32)
    whole = embedding_lookup(weight, ids)
    assert torch.equal(whole, weight[ids.long()])
    parts = [embedding_lookup(weight[first : first + 2], ids, (first, first + 2)) for first in (0, 2, 4)]
    assert torch.equal(sum(parts), whole)


def test_the_naive_cache_remembers_nothing() -> None:
    cache = PREFIX_CACHES.load("naive")()
    ids = torch.arange(8, dtype=torch.int32)
    inserted = cache.insert_prefix(ids, ids)
    assert inserted.already_cached == 0
    handle = cache.match_prefix(ids)
    assert handle.cached_len == len(handle.matched_indices()) == 0
    cache.lock(handle)
    cache.unlock(handle)
    assert cache.size_info() == (0, 0)
    assert len(cache.evict(0)) == 0
    with pytest.raises(RuntimeError, match="cannot evict 3 tokens"):
        cache.evict(3)
    cache.check_integrity()


def test_rows_of_the_page_table_have_one_owner() -> None:
    table = TableManager(2, torch.zeros(3, 8, dtype=torch.int32))
    first, second = table.allocate(), table.allocate()
    assert {first, second} == {0, 1}
    assert table.available_size == 0
    with pytest.raises(RuntimeError, match="no row"):
        table.allocate()
    table.free(first)
    with pytest.raises(RuntimeError, match="is not in use"):
        table.free(first)
    assert table.allocate() == first
    with pytest.raises(ValueError, match="do not fit"):
        TableManager(4, torch.zeros(3, 8, dtype=torch.int32))


@pytest.mark.parametrize("page_size", [1, 4])
def test_rows_are_by_token_even_where_pages_are_larger(page_size: int) -> None:
    table = TableManager(2, torch.zeros(2, 12, dtype=torch.int32))
    pages = torch.tensor([20, 8], dtype=torch.int32)
    table.write_pages(1, 4, pages, page_size)
    wanted = [20, 8] if page_size == 1 else [20, 21, 22, 23, 8, 9, 10, 11]
    assert table.page_table[1].tolist() == [0] * 4 + wanted + [0] * (8 - len(wanted))
    assert table.page_table[0].abs().sum() == 0
    if page_size > 1:
        with pytest.raises(ValueError, match="token 2 is inside a page"):
            table.write_pages(1, 2, pages, page_size)


def test_sizes() -> None:
    assert [div_ceil(a, 4) for a in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [align_up(a, 4) for a in (0, 1, 4, 5)] == [0, 4, 4, 8]
    assert [align_down(a, 4) for a in (0, 3, 4, 7)] == [0, 0, 4, 4]
    assert div_even(8, 4) == 2
    with pytest.raises(ValueError, match="number of heads 6 cannot be divided evenly by 4"):
        div_even(6, 4, what="number of heads")
    assert [local_kv_heads(4, size) for size in (1, 2, 4, 8)] == [4, 2, 1, 1]
    with pytest.raises(ValueError, match="cannot be divided evenly"):
        local_kv_heads(4, 6)
