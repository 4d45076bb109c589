"""Wrong calls of everything but the paged wrappers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flashinfer
import torch
from dense import Paged, Rule, arena, attention, sums
from place import DEVICE, i32, normal, rng, there
from wrong_calls import Result, outcomes
from wrong_paged import HALF, MISALIGNED, a_batch, columns, strided

# BatchAttention.


def persistent(
    kv_len: torch.Tensor | None = None,
    cap: float | None = None,
    *,
    q: torch.dtype = HALF,
    sizes: tuple[int, int] = (2, 16),
) -> Result:
    batch = a_batch("fa2")
    wrapper = flashinfer.BatchAttention("NHD", str(DEVICE))
    wrapper.plan(
        batch.qo_indptr,
        batch.indptr,
        batch.indices,
        i32(batch.kv_lens) if kv_len is None else kv_len,
        8,
        sizes[0],
        64,
        64,
        sizes[1],
        causal=True,
        logits_soft_cap=cap,
        q_data_type=HALF,
        kv_data_type=HALF,
    )
    out, _ = wrapper.run(
        batch.q.to(q), batch.cache("tuple", "NHD"), out=torch.full_like(batch.q, 7.0, dtype=q)
    )
    return out, batch.want(Rule(causal=True, cap=cap or 0.0))[0]


@outcomes(persistent="wrong")
def kv_len_is_int64(path: str) -> Result:
    return persistent(i32(a_batch("fa2").kv_lens).long())


@outcomes(persistent="wrong")
def kv_len_is_negative(path: str) -> Result:
    return persistent(i32([20, -3, 9]))


@outcomes(persistent="wrong")
def kv_len_goes_beyond_its_pages(path: str) -> Result:
    return persistent(i32([36, 40, 9]))


@outcomes(persistent="nan")
def cap_is_forgotten_at_run(path: str) -> Result:
    return persistent(cap=2.0)


@outcomes(persistent="wrong")
def q_of_another_type(path: str) -> Result:
    return persistent(q=torch.bfloat16)


@outcomes(persistent="wrong")
def persistent_kv_heads_are_not_the_planned(path: str) -> Result:
    return persistent(sizes=(4, 16))


@outcomes(persistent="wrong")
def persistent_page_size_is_not_the_planned(path: str) -> Result:
    return persistent(sizes=(2, 8))


# K and V without pages, and blocks.

Q_LENS, KV_LENS = (3, 5, 2), (20, 40, 9)


def ragged(
    path: str, heads: int = 2, change: Callable[[Any], Any] = lambda x: x, **arrays: torch.Tensor
) -> Result:
    generator = rng(1)
    q, k, v = (normal(generator, n, h, 64, dtype=HALF) for n, h in ((10, 8), (69, heads), (69, heads)))
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(arena(), backend=path)
    told = {"qo_indptr": sums(Q_LENS), "kv_indptr": sums(KV_LENS)} | arrays
    wrapper.plan(*told.values(), 8, 2, 64, causal=True, q_data_type=HALF)
    parts = zip(q.split(Q_LENS), k.split(KV_LENS), v.split(KV_LENS), strict=True)
    right = torch.cat([attention(*part, Rule(causal=True))[0] for part in parts])
    return wrapper.run(q, k, change(v)), right


@outcomes(fa2="wrong", fa3="wrong")
def ragged_starts_at_two(path: str) -> Result:
    return ragged(path, kv_indptr=i32([2, 20, 60, 69]))


@outcomes(fa2="raises RuntimeError: kv_indptr[2]20 - kv_indptr[1]60", fa3="raises RuntimeError: kv_len[1]-40")
def ragged_decreases(path: str) -> Result:
    return ragged(path, kv_indptr=i32([0, 60, 20, 69]))


@outcomes(fa2="wrong", fa3="wrong")
def ragged_v_of_another_type(path: str) -> Result:
    return ragged(path, change=lambda v: v.bfloat16())


@outcomes(fa2="wrong")
def blocks_listed_twice(path: str) -> Result:
    generator = rng(1)
    q, k, v = (normal(generator, n, h, 64, dtype=HALF) for n, h in ((8, 8), (16, 2), (16, 2)))
    wrapper = flashinfer.BlockSparseAttentionWrapper(arena())
    wrapper.plan(i32([0, 3, 4]), i32([1, 2, 1, 2]), 8, 16, 4, 4, 8, 2, 64)
    return wrapper.run(q, k, v)[:4], attention(q[:4], k[4:12], v[4:12], Rule())[0]


# FlashAttention 3 of sgl_kernel.


def flash(**changes: Callable[[Paged], Any]) -> Result:
    from sgl_kernel.flash_attn import flash_attn_with_kvcache

    batch = a_batch("fa2")
    options: dict[str, Any] = {
        "q": batch.q,
        "page_table": batch.table,
        "cache_seqlens": i32(batch.kv_lens),
        "cu_seqlens_q": batch.qo_indptr,
    }
    options |= {name: change(batch) for name, change in changes.items()}
    q = options.pop("q")
    out = flash_attn_with_kvcache(q, batch.k, batch.v, **options, max_seqlen_q=5, causal=True)
    return out, batch.want(Rule(causal=True))[0]


@outcomes(sgl="right")
def flash_q_in_columns(path: str) -> Result:
    return flash(q=lambda batch: columns(batch.q))


@outcomes(sgl="right")
def flash_strided_cu_seqlens(path: str) -> Result:
    return flash(cu_seqlens_q=lambda batch: strided(batch.qo_indptr))


@outcomes(sgl="raises RuntimeError: seqused_k must be contiguous")
def flash_strided_lengths(path: str) -> Result:
    return flash(cache_seqlens=lambda batch: strided(i32(batch.kv_lens)))


@outcomes(sgl="raises RuntimeError: seqused_k must have dtype int32")
def flash_lengths_are_int64(path: str) -> Result:
    return flash(cache_seqlens=lambda batch: i32(batch.kv_lens).long())


@outcomes(sgl="raises RuntimeError: batch_size must be equal to batch_size_k")
def flash_cu_seqlens_lacks_a_request(path: str) -> Result:
    return flash(cu_seqlens_q=lambda batch: i32([0, 3, 8]))


@outcomes(sgl="wrong")
def flash_negative_length(path: str) -> Result:
    return flash(cache_seqlens=lambda batch: i32([-5, 40, 9]))


# Row by row.


@outcomes(rows="nan")
def both_states_are_empty(path: str) -> Result:
    import sgl_kernel

    value = torch.ones(2, 4, 64, dtype=HALF, device=DEVICE)
    lse = torch.full((2, 4), -math.inf, device=DEVICE)
    return sgl_kernel.merge_state_v2(value, lse, value, lse)[0], torch.zeros_like(value)


@outcomes(rows="wrong")
def norm_weight_of_another_type(path: str) -> Result:
    x = normal(rng(1), 4, 64, dtype=HALF)
    right = torch.nn.functional.rms_norm(x.float(), (64,), eps=1e-6)
    return flashinfer.rmsnorm(x, torch.ones(64, device=DEVICE)), right


def turned(rotary_dim: int, interleave: bool, positions: tuple[int, ...] = (1, 2, 3)) -> Result:
    """Against the rotation of the first `rotary_dim` elements alone, which needs no alignment."""
    q, k = normal(rng(1), 3, 4, 64, dtype=HALF), normal(rng(2), 3, 2, 64, dtype=HALF)
    out, _ = flashinfer.apply_rope_pos_ids(q, k, i32(positions), rotary_dim=rotary_dim, interleave=interleave)
    speeds = 1e4 ** -(torch.arange(0, rotary_dim, 2).double() / rotary_dim)
    angle = torch.tensor(positions).double()[:, None, None] * speeds
    right, half = q.cpu().double(), rotary_dim // 2
    pairs = (
        (slice(0, rotary_dim, 2), slice(1, rotary_dim, 2))
        if interleave
        else (slice(half), slice(half, 2 * half))
    )
    turn = torch.complex(right[..., pairs[0]], right[..., pairs[1]]) * torch.polar(
        torch.ones_like(angle), angle
    )
    right = right.clone()
    right[..., pairs[0]], right[..., pairs[1]] = turn.real, turn.imag
    return out, right


@outcomes(rows=MISALIGNED)
def rotary_dim_24_of_64(path: str) -> Result:
    return turned(24, False)


@outcomes(rows="right")
def rotary_dim_24_of_64_interleaved(path: str) -> Result:
    return turned(24, True)


@outcomes(rows="right")
def position_below_zero(path: str) -> Result:
    return turned(64, False, (1, -2, 3))


@outcomes(rows="wrong")
def temperature_zero(path: str) -> Result:
    """The right answer being what a temperature near 0 gives, all for the greatest."""
    logits = there(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    return flashinfer.softmax(logits, temperature=0.0), torch.tensor([[0.0, 0.0, 0.0, 1.0]])


@outcomes(rows="wrong")
def appended_keys_of_another_type(path: str) -> Result:
    cache = torch.zeros(6, 2, 4, 2, 64, dtype=HALF, device=DEVICE)
    key = torch.ones(2, 2, 64, dtype=torch.bfloat16, device=DEVICE)
    arrays = (i32([4, 1, 3]), i32([0, 2, 3]), i32([2, 3]))
    flashinfer.append_paged_kv_cache(key, key, i32([0, 1]), i32([1, 0]), cache, *arrays)
    return cache[4, 0, 1], torch.ones(2, 64)
