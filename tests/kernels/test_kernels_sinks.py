"""Paged prefill with attention sinks against dense attention with one more score a head, in float64."""

from __future__ import annotations

import math
import random

import flashinfer
import pytest
import torch
from dense import GROUPS, Rule, arena, paged, random_lengths
from hypothesis import given, settings
from hypothesis import strategies as st
from place import close, rng, there

EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None)
HALF = torch.float16


@pytest.mark.parametrize("window", [-1, 5])
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_sinks_take_their_share(window: int, seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False, empty=False)
    heads = pick.choice(GROUPS)
    batch = paged(
        q_lens, kv_lens, page_size=pick.choice([1, 4, 16]), heads=heads, seed=pick.randrange(1 << 30)
    )
    sinks = 2 * torch.randn(heads[0], generator=rng(pick.randrange(1 << 30)))
    scale = pick.choice([0.125, 0.3])
    wrapper = flashinfer.BatchAttentionWithAttentionSinkWrapper(
        arena(),
        backend="fa2",
        q_data_type=HALF,
        kv_data_type=HALF,
        head_dim_qk=64,
        head_dim_vo=64,
        window_left=window,
    )
    arrays = (batch.qo_indptr, batch.indptr, batch.indices, batch.last)
    causal = pick.random() < 0.6
    wrapper.plan(*arrays, *batch.sizes, causal=causal, window_left=window)
    cache = batch.cache("tuple", "NHD")
    want, natural = batch.want(Rule(causal=causal, left=window, scale=scale, sinks=sinks))
    out, lse = wrapper.run(batch.q, cache, there(sinks), scale, return_lse=True)
    close(out, want, HALF)
    close(lse, natural / math.log(2), HALF, lse=True)


def test_the_scale_may_be_the_plans() -> None:
    batch = paged([3, 4], [20, 9], seed=1)
    sinks = torch.linspace(-2, 3, 8)
    wrapper = flashinfer.BatchAttentionWithAttentionSinkWrapper(
        arena(), backend="fa2", q_data_type=HALF, kv_data_type=HALF, head_dim_qk=64, head_dim_vo=64
    )
    arrays = (batch.qo_indptr, batch.indptr, batch.indices, batch.last)
    wrapper.plan(*arrays, *batch.sizes, causal=True, sm_scale=0.3)
    out = wrapper.run(batch.q, batch.cache("tuple", "NHD"), there(sinks))
    close(out, batch.want(Rule(causal=True, scale=0.3, sinks=sinks))[0], HALF)
