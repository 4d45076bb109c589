"""Custom masks, of batches and of single requests, and the packing of bits, against dense attention in float64."""

from __future__ import annotations

import math
import random
from typing import Any

import flashinfer
import numpy as np
import pytest
import torch
from dense import GROUPS, Rule, arena, attention, paged, random_lengths, random_masks, sums
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, close, i32, rng, there

EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None)
HALF = torch.float16


def flat(masks: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([mask.flatten() for mask in masks])


def rule_of(pick: random.Random) -> tuple[Rule, dict[str, Any]]:
    """A window and a cap, or neither; causal is passed too and must not matter."""
    left, cap = pick.choice([(-1, 0.0), (5, 2.5)])
    options = {"window_left": left, "logits_soft_cap": cap or None, "causal": pick.random() < 0.5}
    return Rule(left=left, cap=cap), options


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_paged_batches_with_masks(seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False, longest=40, empty=False)
    batch = paged(
        q_lens,
        kv_lens,
        page_size=pick.choice([1, 4, 16]),
        heads=pick.choice(GROUPS),
        seed=pick.randrange(1 << 30),
    )
    masks = random_masks(pick, q_lens, kv_lens)
    rule, options = rule_of(pick)
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(arena(), backend="fa2")
    arrays = (batch.qo_indptr, batch.indptr, batch.indices, batch.last)
    wrapper.plan(*arrays, *batch.sizes, custom_mask=flat(masks), **options)
    want, natural = batch.want(rule, masks)
    cache = batch.cache("tuple", "NHD")
    close(wrapper.run(batch.q, cache), want, HALF, loose=rule.loose)
    out, lse = wrapper.run_return_lse(batch.q, cache)
    close(out, want, HALF, loose=rule.loose)
    close(lse, natural / math.log(2), HALF, lse=True, loose=rule.loose)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_ragged_batches_with_masks(seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False, longest=40, empty=False)
    batch = paged(q_lens, kv_lens, page_size=1, heads=pick.choice(GROUPS), seed=pick.randrange(1 << 30))
    k = torch.cat([batch.tokens(batch.k, i) for i in range(len(kv_lens))])
    v = torch.cat([batch.tokens(batch.v, i) for i in range(len(kv_lens))])
    masks = random_masks(pick, q_lens, kv_lens)
    rule, options = rule_of(pick)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(arena(), backend="fa2")
    wrapper.plan(sums(q_lens), sums(kv_lens), *batch.heads, 64, custom_mask=flat(masks), **options)
    want, natural = batch.want(rule, masks)
    out, lse = wrapper.run_return_lse(batch.q, k, v)
    close(out, want, HALF, loose=rule.loose)
    close(lse, natural / math.log(2), HALF, lse=True, loose=rule.loose)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_one_request_with_a_mask_packed_or_not(seed: int) -> None:
    pick = random.Random(seed)
    n, kv = pick.randint(1, 40), pick.randint(1, 60)
    batch = paged([n], [kv], page_size=1, heads=pick.choice(GROUPS), seed=pick.randrange(1 << 30))
    k, v = batch.tokens(batch.k, 0), batch.tokens(batch.v, 0)
    (mask,) = random_masks(pick, [n], [kv])
    want, _ = attention(batch.q, k, v, Rule(), mask)
    close(flashinfer.single_prefill_with_kv_cache(batch.q, k, v, custom_mask=mask, causal=True), want, HALF)
    bits = flashinfer.packbits(mask.flatten(), bitorder="little")
    close(flashinfer.single_prefill_with_kv_cache(batch.q, k, v, packed_custom_mask=bits), want, HALF)
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(arena(), backend="fa2")
    arrays = (batch.qo_indptr, batch.indptr, batch.indices, batch.last)
    wrapper.plan(*arrays, *batch.sizes, packed_custom_mask=bits)
    close(wrapper.run(batch.q, batch.cache("tuple", "NHD")), want, HALF)


def test_a_causal_mask_written_out_is_causal() -> None:
    batch = paged([7, 1, 12], [30, 8, 12], page_size=4, seed=1)
    masks = [
        there(torch.ones(n, kv, dtype=torch.bool).tril(kv - n))
        for n, kv in zip(batch.q_lens, batch.kv_lens, strict=True)
    ]
    outs = []
    for options in ({"causal": True}, {"custom_mask": flat(masks)}):
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(arena(), backend="fa2")
        wrapper.plan(batch.qo_indptr, batch.indptr, batch.indices, batch.last, *batch.sizes, **options)
        outs.append(wrapper.run(batch.q, batch.cache("tuple", "NHD")))
    close(outs[1], outs[0].double(), HALF)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 1001])
def test_packbits_is_numpys(size: int, order: str) -> None:
    values = torch.rand(size, generator=rng(size)) < 0.5
    want = np.packbits(values.numpy(), bitorder=order)
    assert flashinfer.packbits(there(values), bitorder=order).cpu().tolist() == want.tolist()


@pytest.mark.parametrize("order", ["big", "little"])
def test_segments_begin_at_a_byte(order: str) -> None:
    lengths = [4, 3, 0, 17, 8]
    values = torch.rand(sum(lengths), generator=rng(3)) < 0.5
    packed, indptr = flashinfer.segment_packbits(there(values), sums(lengths), bitorder=order)
    want = [np.packbits(part.numpy(), bitorder=order) for part in values.split(lengths)]
    assert indptr.cpu().tolist() == [0, 1, 2, 2, 5, 6]
    assert packed.cpu().tolist() == np.concatenate(want).tolist()
    assert packed.dtype == torch.uint8
    assert indptr.device.type == DEVICE.type
    assert indptr.dtype == i32([]).dtype
