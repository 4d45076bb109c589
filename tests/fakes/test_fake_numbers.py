"""The numbers of the fakes: bit for bit the reference backend's SDPA call where that is promised, the
definition of attention in float64 everywhere else.
"""

from __future__ import annotations

import math
import random

import pytest
import torch
import torch.nn.functional as F
from fake_kernels.reference import Request, attend, gather
from fake_kernels.variants import Variant
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_batches import (
    DECODE_PATHS,
    PATHS,
    PREFILL_PATHS,
    PagedBatch,
    dense_float64,
    i32,
    make_batch,
    plan,
    plan_and_run,
    table_of,
    tokens_of,
    wrapper_for,
)
from sgl_kernel.flash_attn import flash_attn_with_kvcache


def sdpa_by_request(batch: PagedBatch) -> torch.Tensor:
    """The call that an engine's reference backend makes, request by request."""
    out = torch.empty_like(batch.q)
    row = 0
    flat_k = batch.k.reshape(-1, *batch.k.shape[2:])
    flat_v = batch.v.reshape(-1, *batch.v.shape[2:])
    for i, (n, kv_len) in enumerate(zip(batch.q_lens, batch.kv_lens, strict=True)):
        first = int(batch.indptr[i])
        slots = torch.tensor(
            [
                int(batch.indices[first + j // batch.page_size]) * batch.page_size + j % batch.page_size
                for j in range(kv_len)
            ]
        )
        k, v = flat_k.index_select(0, slots), flat_v.index_select(0, slots)
        mask = torch.arange(kv_len).unsqueeze(0) <= torch.arange(kv_len - n, kv_len).unsqueeze(1)
        mixed = F.scaled_dot_product_attention(
            batch.q[row : row + n].transpose(0, 1).unsqueeze(0),
            k.transpose(0, 1).unsqueeze(0),
            v.transpose(0, 1).unsqueeze(0),
            attn_mask=mask,
            scale=batch.q.shape[-1] ** -0.5,
            enable_gqa=True,
        )
        out[row : row + n] = mixed.squeeze(0).transpose(0, 1)
        row += n
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("path", [*PATHS, "flash"])
def test_plain_attention_is_the_reference_backends_call_bit_for_bit(
    path: str, page_size: int, dtype: torch.dtype
) -> None:
    q_lens = None if path in DECODE_PATHS else (7, 1, 16, 3)
    batch = make_batch((9, 33, 16, 70), q_lens, page_size=page_size, dtype=dtype)
    if path == "flash":
        out = flash_attn_with_kvcache(
            batch.q,
            batch.k,
            batch.v,
            page_table=table_of(batch),
            cache_seqlens=i32(batch.kv_lens),
            cu_seqlens_q=batch.qo_indptr,
            max_seqlen_q=16,
            causal=True,
        )
    else:
        out = plan_and_run(path, batch)
    assert torch.equal(out, sdpa_by_request(batch))


def test_the_seeds_two_requests_agree_through_page_size_1_and_4() -> None:
    """Chapter 17's batch: tokens 16-20 and 40-45 of a pool, as flashinfer and as FlashAttention see it."""
    pool_k, pool_v, q = torch.randn(64, 2, 64), torch.randn(64, 2, 64), torch.randn(3, 4, 64)
    fi = wrapper_for("fa2")
    fi.plan(
        i32([0, 2, 3]),
        i32([0, 5, 11]),
        i32([16, 17, 18, 19, 20, 40, 41, 42, 43, 44, 45]),
        i32([1, 1]),
        4,
        2,
        64,
        1,
        causal=True,
        q_data_type=torch.float32,
    )
    first = fi.run(q, (pool_k.view(-1, 1, 2, 64), pool_v.view(-1, 1, 2, 64)))
    second = flash_attn_with_kvcache(
        q,
        pool_k.view(16, 4, 2, 64),
        pool_v.view(16, 4, 2, 64),
        page_table=i32([4, 5, 10, 11]).view(2, 2),
        cache_seqlens=i32([5, 6]),
        cu_seqlens_q=i32([0, 2, 3]),
        max_seqlen_q=2,
        causal=True,
    )
    assert torch.equal(first, second)


def random_batch(rng: random.Random, decode: bool, least: int = 0) -> PagedBatch:
    """Any legal batch: empty and short requests (KV shorter than q too), groups that the kernels have."""
    count = rng.randint(1, 4)
    return make_batch(
        [rng.choice([least, 1, 2, rng.randint(1, 40)]) for _ in range(count)],
        None if decode else [rng.choice([0, 1, rng.randint(1, 9)]) for _ in range(count)],
        page_size=rng.choice([1, 2, 4, 16]),
        heads=rng.choice([(1, 1), (4, 4), (4, 2), (6, 2), (8, 1)]),
        head_dim=rng.choice([8, 16, 64]),
        dtype=torch.float32,
        spare_pages=rng.randint(1, 3),
        seed=rng.randrange(1 << 30),
    )


def as_cache(batch: PagedBatch, form: str, layout: str) -> object:
    """The batch's cache in one of the forms that flashinfer takes."""
    k, v = batch.k, batch.v
    if layout == "HND":
        k, v = (cache.transpose(1, 2).contiguous() for cache in (k, v))
    if form == "tuple":
        return (k, v)
    if form == "stacked":
        return torch.stack([k, v], dim=1)
    page = 1 if layout == "NHD" else 2
    flat = (k.squeeze(page), v.squeeze(page))
    return flat if form == "tuple, no page dimension" else torch.stack(flat, dim=1)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_wrappers_agree_with_dense_attention(seed: int) -> None:
    rng = random.Random(seed)
    path = rng.choice(PATHS)
    batch = random_batch(rng, path in DECODE_PATHS)
    if rng.random() < 0.5:
        batch = batch.but(seq_lens=i32(batch.kv_lens))
    if rng.random() < 0.3:  # indices may have room to spare, whatever stands there
        batch = batch.but(indices=torch.cat([batch.indices, i32([-7, 1 << 30])]))
    layout = rng.choice(["NHD", "HND"])
    forms = ["tuple", "stacked"]
    if batch.page_size == 1:
        forms += ["tuple, no page dimension", "stacked, no page dimension"]
    cache = as_cache(batch, rng.choice(forms), layout)
    causal = path in PREFILL_PATHS and rng.random() < 0.6
    window = rng.choice([-1, -1, 0, 1, 5, 100])
    soft_cap = rng.choice([0.0, 0.0, 2.5])
    scale = rng.choice([None, 0.3])
    options = {"window_left": window, "logits_soft_cap": soft_cap, "sm_scale": scale}
    if path in PREFILL_PATHS:
        options["causal"] = causal
    wrapper = wrapper_for(path, kv_layout=layout)
    plan(wrapper, batch, **options)
    want, want_lse = dense_float64(batch, causal=causal, window=(window, -1), soft_cap=soft_cap, scale=scale)
    out = wrapper.run(batch.q, cache)
    torch.testing.assert_close(out.double(), want, atol=1e-5, rtol=1e-5)
    again, lse = wrapper.run_return_lse(batch.q, cache)
    torch.testing.assert_close(again.double(), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(lse.double(), want_lse / math.log(2), atol=1e-5, rtol=1e-5)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_flash_attention_agrees_with_dense_attention(seed: int) -> None:
    rng = random.Random(seed)
    batch = random_batch(rng, decode=False)
    causal = rng.random() < 0.6
    window = rng.choice([(-1, -1), (-1, -1), (3, 0), (2, 4), (-1, 2)])
    soft_cap = rng.choice([0.0, 2.5])
    scale = rng.choice([None, 0.3])
    options = {
        "page_table": table_of(batch, padding=rng.choice([0, -1, 10_000])),
        "cache_seqlens": i32(batch.kv_lens),
        "cu_seqlens_q": batch.qo_indptr,
        "max_seqlen_q": max(batch.q_lens) + rng.choice([0, 3]),
        "causal": causal,
        "window_size": window,
        "softcap": soft_cap,
        "softmax_scale": scale,
    }
    want, want_lse = dense_float64(batch, causal=causal, window=window, soft_cap=soft_cap, scale=scale)
    out = flash_attn_with_kvcache(batch.q, batch.k, batch.v, **options)
    torch.testing.assert_close(out.double(), want, atol=1e-5, rtol=1e-5)
    again, lse = flash_attn_with_kvcache(batch.q, batch.k, batch.v, **options, return_softmax_lse=True)
    torch.testing.assert_close(again.double(), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(lse.double(), want_lse.t(), atol=1e-5, rtol=1e-5)


def test_flash_attention_without_cu_seqlens_takes_one_row_block_a_request() -> None:
    batch = make_batch((5, 9), (3, 3), page_size=4, dtype=torch.float32)
    want, want_lse = dense_float64(batch, causal=True)
    out, lse = flash_attn_with_kvcache(
        batch.q.view(2, 3, 8, 64),
        batch.k,
        batch.v,
        page_table=table_of(batch),
        cache_seqlens=i32(batch.kv_lens),
        causal=True,
        return_softmax_lse=True,
    )
    assert out.shape == (2, 3, 8, 64)
    assert lse.shape == (2, 8, 3)
    torch.testing.assert_close(out.flatten(0, 1).double(), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(lse.transpose(1, 2).flatten(0, 1).double(), want_lse, atol=1e-5, rtol=1e-5)


def test_flash_attention_without_a_page_table_reads_one_cache_row_a_request() -> None:
    batch = make_batch((4, 4), (2, 1), page_size=4, dtype=torch.float32)
    rows = [tokens_of(batch, cache, i) for cache in (batch.k, batch.v) for i in range(2)]
    k, v = torch.stack(rows[:2]), torch.stack(rows[2:])
    want, _ = dense_float64(batch, causal=True)
    out = flash_attn_with_kvcache(
        batch.q, k, v, cache_seqlens=4, cu_seqlens_q=batch.qo_indptr, max_seqlen_q=2, causal=True
    )
    torch.testing.assert_close(out.double(), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("path", PREFILL_PATHS)
def test_lse_base_and_layout(path: str) -> None:
    batch = make_batch((5, 9), (3, 4))
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    cache = (batch.k, batch.v)
    _, base2 = wrapper.run(batch.q, cache, return_lse=True)
    _, natural = wrapper.run(batch.q, cache, return_lse=True, lse_base="ln", lse_layout="HN")
    torch.testing.assert_close(natural.t(), base2 * math.log(2))
    assert natural.is_contiguous()
    with pytest.raises(ValueError, match="lse_base must be one of"):
        wrapper.run(batch.q, cache, return_lse=True, lse_base="log10")


@pytest.mark.parametrize("path", PATHS)
def test_out_and_lse_are_filled_and_returned(path: str) -> None:
    batch = make_batch((5, 9))
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    cache = (batch.k, batch.v)
    want, want_lse = wrapper.run_return_lse(batch.q, cache)
    out, lse = torch.empty_like(want), torch.empty_like(want_lse)
    got, got_lse = wrapper.run(batch.q, cache, out=out, lse=lse, return_lse=True)
    assert got is out
    assert got_lse is lse
    assert torch.equal(out, want)
    assert torch.equal(lse, want_lse)
    with pytest.raises(ValueError, match="Invalid shape of out"):
        wrapper.run(batch.q, cache, out=out[:1])
    with pytest.raises(ValueError, match="Invalid dtype of lse"):
        wrapper.run(batch.q, cache, lse=lse.double(), return_lse=True)


def test_forward_brings_its_own_options_and_isnt_causal() -> None:
    batch = make_batch((5, 9), (3, 4), dtype=torch.float32)
    wrapper = wrapper_for("fa2")
    plan(wrapper, batch, causal=True, sm_scale=0.5)
    out = wrapper.forward(batch.q, (batch.k, batch.v))
    want, want_lse = dense_float64(batch, causal=False)
    torch.testing.assert_close(out.double(), want, atol=1e-5, rtol=1e-5)
    _, lse = wrapper.forward_return_lse(batch.q, (batch.k, batch.v))
    torch.testing.assert_close(lse.double(), want_lse / math.log(2), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("stacked", [False, True])
def test_gather_is_contiguous_in_every_layout(layout: str, stacked: bool) -> None:
    by_token = torch.arange(3 * 4 * 2 * 5, dtype=torch.float32).view(3, 4, 2, 5)
    cache = by_token if layout == "NHD" else by_token.transpose(1, 2).contiguous()
    if stacked:
        cache = torch.stack([cache, -cache], dim=1).unbind(1)[0]
    slots = torch.tensor([11, 0, 5])
    got = gather(cache, slots, layout)
    assert got.is_contiguous()
    assert torch.equal(got, by_token.reshape(12, 2, 5)[slots])


def test_a_nan_in_the_cache_is_not_hidden() -> None:
    q, k = torch.randn(2, 1, 8), torch.randn(4, 1, 1, 8)
    k[2] = math.nan
    for with_lse in (False, True):
        out, _ = attend(q, k, k, [Request(0, 2, torch.arange(4))], Variant(scale=1.0), with_lse=with_lse)
        assert bool(out[1].isnan().all())
