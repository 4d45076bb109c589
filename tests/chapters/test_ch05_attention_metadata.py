"""Chapter 5: the numbers of a batch, and paged attention against dense."""

import pytest
import torch

from minisgl.attention import create_attention_backend, resolve_backend
from minisgl.attention.utils import make_indptr, make_positions
from minisgl.core import Batch, Context, Phase, Req, SamplingParams, set_global_ctx
from minisgl.distributed import DistributedInfo, set_tp_info
from minisgl.kvcache import create_kvcache_pool
from minisgl.models.config import ModelConfig

CPU = torch.device("cpu")
CONFIG = ModelConfig.from_hf(
    {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 100,
        "max_position_embeddings": 64,
    }
)


def request(row: int, length: int, cached_len: int) -> Req:
    return Req(torch.zeros(length, dtype=torch.int32), row, cached_len, 2, row, SamplingParams(), None)


def test_starts_and_positions() -> None:
    assert make_indptr([2, 6], CPU).tolist() == [0, 2, 8]
    assert make_indptr([], CPU).tolist() == [0]
    reqs = [request(0, 5, 3), request(1, 6, 0)]
    assert make_positions(reqs, CPU).tolist() == [3, 4, 0, 1, 2, 3, 4, 5]


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = torch.einsum("nhd,khd->hnk", q, k) * q.shape[-1] ** -0.5
    at = torch.arange(len(k) - len(q), len(k)).unsqueeze(1)
    scores = scores.masked_fill(torch.arange(len(k)) > at, float("-inf"))
    return torch.einsum("hnk,khd->nhd", scores.softmax(-1), v)


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize(
    ("phase", "lengths", "cached"),
    [
        ("prefill", [5, 6], [0, 0]),
        ("prefill", [5, 6, 1], [3, 5, 0]),
        ("decode", [5, 9], [4, 8]),
        ("decode", [1, 8, 3, 13, 4], [0, 7, 2, 12, 3]),  # enough requests for one call for all of them
    ],
)
def test_paged_is_dense(phase: Phase, lengths: list[int], cached: list[int], page_size: int) -> None:
    torch.manual_seed(0)
    set_tp_info(DistributedInfo(0, 1))
    ctx = Context(page_size)
    set_global_ctx(ctx)
    ctx.kv_cache = create_kvcache_pool(CONFIG, 96 // page_size, page_size, torch.float32, CPU)
    pages = torch.randperm(96 // page_size)[: len(lengths) * (16 // page_size)] * page_size
    places = pages.unsqueeze(1) + torch.arange(page_size)
    ctx.page_table = places.view(len(lengths), 16).int()
    backend = create_attention_backend("torch", CONFIG, ctx.kv_cache)
    reqs = [request(row, length, c) for row, (length, c) in enumerate(zip(lengths, cached, strict=True))]
    keys = [torch.randn(length, 2, 16) for length in lengths]
    values = [torch.randn(length, 2, 16) for length in lengths]
    for row, c in enumerate(cached):
        ctx.kv_cache.store_kv(keys[row][:c], values[row][:c], ctx.page_table[row, :c], 0)
    batch = Batch(reqs, phase)
    batch.out_loc = torch.cat([ctx.page_table[r.table_idx, r.cached_len : r.device_len] for r in reqs])
    backend.prepare_metadata(batch)
    queries = [torch.randn(r.extend_len, 4, 16) for r in reqs]
    new_k = torch.cat([k[c:] for k, c in zip(keys, cached, strict=True)])
    new_v = torch.cat([v[c:] for v, c in zip(values, cached, strict=True)])
    got = backend.forward(torch.cat(queries), new_k, new_v, 0, batch)
    wanted = torch.cat([dense(*one) for one in zip(queries, keys, values, strict=True)])
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)
    ends = make_indptr([r.extend_len for r in reqs], CPU)[1:] - 1
    assert batch.attn_metadata.get_last_indices(len(reqs)).tolist() == ends.tolist()


def test_names() -> None:
    assert (resolve_backend("auto", "cpu"), resolve_backend("auto", "cuda")) == ("torch", "fa,fi")
    set_tp_info(DistributedInfo(0, 1))
    pool = create_kvcache_pool(CONFIG, 4, 1, torch.float32, CPU)
    with pytest.raises(ValueError, match="unknown attention backend 'flash'"):
        create_attention_backend("flash", CONFIG, pool)
    with pytest.raises(ValueError, match="give one name, or two"):
        create_attention_backend("torch,torch,torch", CONFIG, pool)
