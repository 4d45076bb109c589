"""Prefill over K and V without pages, of batches (ragged) and of single requests, and single decode, against dense
attention in float64. HND only where a kernel reads it: on fa3 the library divides by zero and the process dies.
"""

from __future__ import annotations

import math
import random
from typing import Any

import flashinfer
import pytest
import torch
from dense import GROUPS, Rule, arena, attention, random_lengths, sums
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, close, normal, rng

EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None)
HALF = torch.float16


def numbers(
    q_rows: int, kv_rows: int, heads: tuple[int, int], dims: tuple[int, int], seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [q_rows, heads, dims[0]], k and v [kv_rows, kv_heads, dims[0] and dims[1]]."""
    generator = rng(seed)
    q = normal(generator, q_rows, heads[0], dims[0], dtype=HALF)
    k = normal(generator, kv_rows, heads[1], dims[0], dtype=HALF)
    return q, k, normal(generator, kv_rows, heads[1], dims[1], dtype=HALF)


def in_layout(x: torch.Tensor, layout: str) -> torch.Tensor:
    return x if layout == "NHD" else x.transpose(0, 1).contiguous()


def check_ragged(
    backend: str,
    q_lens: list[int],
    kv_lens: list[int],
    rule: Rule,
    *,
    heads: tuple[int, int] = (8, 2),
    dims: tuple[int, int] = (64, 64),
    layout: str = "NHD",
    seed: int = 0,
) -> None:
    """Plan and run a batch, and hold output and LSE to the definition."""
    q, k, v = numbers(sum(q_lens), sum(kv_lens), heads, dims, seed)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(arena(), layout, backend=backend)
    wrapper.plan(
        sums(q_lens),
        sums(kv_lens),
        *heads,
        dims[0],
        head_dim_vo=dims[1],
        causal=rule.causal,
        window_left=rule.left,
        logits_soft_cap=rule.cap or None,
        sm_scale=rule.scale,
        q_data_type=HALF,
    )
    parts = [
        attention(*of, rule) for of in zip(q.split(q_lens), k.split(kv_lens), v.split(kv_lens), strict=True)
    ]
    want = torch.cat([out for out, _ in parts])
    natural = torch.cat([lse for _, lse in parts])
    given_k, given_v = in_layout(k, layout), in_layout(v, layout)
    plain = wrapper.run(q, given_k, given_v)
    assert plain.shape == (sum(q_lens), heads[0], dims[1])
    close(plain, want, HALF, loose=rule.loose)
    out, lse = wrapper.run_return_lse(q, given_k, given_v)
    close(out, want, HALF, loose=rule.loose)
    close(lse, natural / math.log(2), HALF, lse=True, loose=rule.loose)
    filled = torch.full_like(lse, 7.0)
    close(wrapper.run(q, given_k, given_v, lse=filled), want, HALF, loose=rule.loose)
    close(filled, natural / math.log(2), HALF, lse=True, loose=rule.loose)
    _, ln = wrapper.run(q, given_k, given_v, return_lse=True, lse_base="ln", lse_layout="HN")
    close(ln, natural.t(), HALF, lse=True, loose=rule.loose)


@pytest.mark.parametrize("backend", ["fa2", "fa3"])
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_ragged_batches(backend: str, seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False)
    if sum(kv_lens) == 0:
        kv_lens[0] = 1
    plain = pick.random() < 0.5
    rule = Rule(
        causal=pick.random() < 0.6,
        left=-1 if plain else pick.choice([0, 1, 5, 100]),
        cap=0.0 if plain else pick.choice([1.5, 30.0]),
        scale=pick.choice([None, 0.3]),
    )
    heads, layout = pick.choice(GROUPS), pick.choice(["NHD", "HND"] if backend == "fa2" else ["NHD"])
    check_ragged(backend, q_lens, kv_lens, rule, heads=heads, layout=layout, seed=pick.randrange(1 << 30))


def test_ragged_with_another_head_dim_of_v() -> None:
    check_ragged("fa2", [3, 17, 1], [9, 40, 5], Rule(causal=True), heads=(4, 4), dims=(192, 128), seed=1)


def single(kind: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: str, **options: Any) -> Any:
    return kind(q, in_layout(k, layout), in_layout(v, layout), kv_layout=layout, **options)


@pytest.mark.parametrize("backend", ["fa2", "fa3"])
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_single_prefill(backend: str, seed: int) -> None:
    pick = random.Random(seed)
    n, kv = pick.choice([1, 2, pick.randint(1, 70)]), pick.choice([1, 2, pick.randint(1, 140)])
    heads, layout = pick.choice(GROUPS), pick.choice(["NHD", "HND"] if backend == "fa2" else ["NHD"])
    causal = pick.random() < 0.6
    if causal and backend == "fa2" and kv < n:
        kv = n  # else refused: see below
    q, k, v = numbers(n, kv, heads, (64, 64), pick.randrange(1 << 30))
    rule = Rule(causal=causal, scale=pick.choice([None, 0.3]))
    if backend == "fa2" and pick.random() < 0.5:
        rule = Rule(causal=rule.causal, scale=rule.scale, left=pick.choice([0, 5, 40]), cap=2.5)
    options = {
        "causal": rule.causal,
        "window_left": rule.left,
        "logits_soft_cap": rule.cap or None,
        "sm_scale": rule.scale,
        "backend": backend,
    }
    want, natural = attention(q, k, v, rule)
    close(
        single(flashinfer.single_prefill_with_kv_cache, q, k, v, layout, **options),
        want,
        HALF,
        loose=rule.loose,
    )
    out, lse = single(flashinfer.single_prefill_with_kv_cache_return_lse, q, k, v, layout, **options)
    close(out, want, HALF, loose=rule.loose)
    close(lse, natural / math.log(2), HALF, lse=True, loose=rule.loose)


def test_single_prefill_on_fa2_wants_all_keys_under_causal() -> None:
    q, k, v = numbers(5, 3, (8, 2), (64, 64), 3)
    with pytest.raises(
        RuntimeError, match="kv_len must be greater than or equal to qo_len, got kv_len3 and qo_len 5"
    ):
        flashinfer.single_prefill_with_kv_cache(q, k, v, causal=True, backend="fa2")


@pytest.mark.parametrize("use_tensor_cores", [False, True])
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_single_decode(use_tensor_cores: bool, seed: int) -> None:
    pick = random.Random(seed)
    kv = pick.choice([1, 2, pick.randint(1, 300)])
    heads, layout = pick.choice(GROUPS), pick.choice(["NHD", "HND"])
    q, k, v = numbers(1, kv, heads, (64, 64), pick.randrange(1 << 30))
    rule = Rule(scale=pick.choice([None, 0.3]))
    want, natural = attention(q, k, v, rule)
    options = {"use_tensor_cores": use_tensor_cores, "sm_scale": rule.scale}
    out = single(flashinfer.single_decode_with_kv_cache, q[0], k, v, layout, **options)
    assert out.shape == q.shape[1:]
    close(out, want[0], HALF)
    out, lse = single(flashinfer.single_decode_with_kv_cache, q[0], k, v, layout, **options, return_lse=True)
    close(out, want[0], HALF)
    close(lse, natural[0] / math.log(2), HALF, lse=True)


def test_a_ragged_batch_is_its_requests_one_by_one() -> None:
    q, k, v = numbers(12, 30, (8, 2), (64, 64), 2)
    q_lens, kv_lens = [5, 7], [11, 19]
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(arena(), backend="fa2")
    wrapper.plan(sums(q_lens), sums(kv_lens), 8, 2, 64, causal=True)
    out = wrapper.run(q, k, v)
    assert out.device.type == DEVICE.type
    for i, (a, b, c) in enumerate(zip(q.split(q_lens), k.split(kv_lens), v.split(kv_lens), strict=True)):
        alone = flashinfer.single_prefill_with_kv_cache(a, b, c, causal=True, backend="fa2")
        close(out.split(q_lens)[i], alone.double(), HALF)
