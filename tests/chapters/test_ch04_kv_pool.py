"""Chapter 4: memory for keys and values, and rows that are by token position."""

import pytest
import torch

from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.kvcache import PREFIX_CACHES, create_kvcache_pool, create_prefix_cache
from minisgl.kvcache.mha_pool import MHAKVCache
from minisgl.models.config import ModelConfig
from minisgl.scheduler.table import TableManager

CPU = torch.device("cpu")
QWEN3_0_6B = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
}


@pytest.fixture(autouse=True)
def _single_rank() -> None:
    set_tp_info(DistributedInfo(0, 1))


def test_bytes_a_token() -> None:
    assert MHAKVCache.bytes_per_token(ModelConfig.from_hf(QWEN3_0_6B), torch.bfloat16) == 114_688


@pytest.mark.parametrize("page_size", [1, 4])
def test_what_is_stored_at_a_position_is_found_there(page_size: int) -> None:
    config = ModelConfig.from_hf(
        {**QWEN3_0_6B, "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 4}
    )
    pool = create_kvcache_pool(config, 16 // page_size, page_size, torch.float32, CPU)
    at = torch.tensor([9, 2, 15], dtype=torch.int32)
    k, v = torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    pool.store_kv(k, v, at, layer_id=1)
    for position, key, value in zip(at.tolist(), k, v, strict=True):
        page, within = divmod(position, page_size)
        assert torch.equal(pool.k_cache(1)[page, within], key)
        assert torch.equal(pool.v_cache(1)[page, within], value)
    assert not pool.k_cache(0).any()


@pytest.mark.parametrize(("page_size", "row"), [(1, [20, 8]), (4, [20, 21, 22, 23, 8, 9, 10, 11])])
def test_a_row_is_by_token_whatever_the_page_size(page_size: int, row: list[int]) -> None:
    table = TableManager(2, torch.zeros(2, 12, dtype=torch.int32))
    table.write_pages(1, 4, torch.tensor([20, 8], dtype=torch.int32), page_size)
    assert table.page_table[1, 4 : 4 + len(row)].tolist() == row
    each = TableManager(2, torch.zeros(2, 12, dtype=torch.int32))
    each.write_page_each([1, 1], [4, 4 + page_size], torch.tensor([20, 8], dtype=torch.int32), page_size)
    assert torch.equal(each.page_table, table.page_table)


def test_a_row_has_one_owner() -> None:
    table = TableManager(1, torch.zeros(2, 4, dtype=torch.int32))
    row = table.allocate()
    with pytest.raises(RuntimeError, match="no row"):
        table.allocate()
    table.free(row)
    with pytest.raises(RuntimeError, match="is not in use"):
        table.free(row)


def test_the_cache_that_remembers_nothing() -> None:
    cache = create_prefix_cache("naive", 4, CPU)
    ids = torch.arange(8, dtype=torch.int32)
    assert cache.insert_prefix(ids, ids).already_cached == 0
    assert cache.match_prefix(ids).cached_len == 0
    with pytest.raises(ValueError, match="unknown prefix cache 'lru'"):
        PREFIX_CACHES.load("lru")
