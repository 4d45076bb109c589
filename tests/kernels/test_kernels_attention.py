"""Every kernel over paged KV against dense attention in float64: random lengths, pages, layouts, groups, windows,
caps and scales, empty requests and KV shorter than q.

On a GPU each (kernel, type, window or cap or not) is compiled once, so all tests share few of them.
"""

from __future__ import annotations

import math
import random
from typing import Any

import flashinfer
import pytest
import torch
from dense import GROUPS, Paged, Rule, arena, paged, random_lengths
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, REAL, close

PATHS = ("dec", "tc", "fa2", "fa3")
EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None)


def wrapper_for(path: str, layout: str = "NHD") -> Any:
    """A fresh wrapper of one kernel path."""
    if path in ("dec", "tc"):
        return flashinfer.BatchDecodeWithPagedKVCacheWrapper(arena(), layout, use_tensor_cores=path == "tc")
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(arena(), layout, backend=path)


def planned(path: str, batch: Paged, rule: Rule, layout: str = "NHD", **options: Any) -> Any:
    """A wrapper of `path` that is planned for `batch`."""
    wrapper = wrapper_for(path, layout)
    told = {
        "window_left": rule.left,
        "logits_soft_cap": rule.cap or None,
        "sm_scale": rule.scale,
        "q_data_type": batch.q.dtype,
        **options,
    }
    arrays = (batch.indptr, batch.indices, batch.last)
    if path in ("dec", "tc"):
        wrapper.plan(*arrays, *batch.sizes, **told)
    else:
        wrapper.plan(batch.qo_indptr, *arrays, *batch.sizes, causal=rule.causal, **told)
    return wrapper


def check(
    path: str, batch: Paged, rule: Rule, form: str = "tuple", layout: str = "NHD", **options: Any
) -> None:
    """Plan, run with and without LSE, and hold both to the definition."""
    wrapper = planned(path, batch, rule, layout, **options)
    cache = batch.cache(form, layout)
    want, natural = batch.want(rule)
    plain = wrapper.run(batch.q, cache)
    assert plain.dtype == batch.q.dtype
    close(plain, want, batch.q.dtype, loose=rule.loose)
    out, lse = wrapper.run_return_lse(batch.q, cache)
    assert lse.dtype == torch.float32
    close(out, want, batch.q.dtype, loose=rule.loose)
    close(lse, natural / math.log(2), batch.q.dtype, lse=True, loose=rule.loose)


def random_batch(pick: random.Random, decode: bool) -> Paged:
    q_lens, kv_lens = random_lengths(pick, decode)
    return paged(
        q_lens,
        kv_lens,
        page_size=pick.choice([1, 4, 5, 16]),
        heads=pick.choice(GROUPS),
        seed=pick.randrange(1 << 30),
    )


@pytest.mark.parametrize("path", PATHS)
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_plain_and_causal(path: str, seed: int) -> None:
    pick = random.Random(seed)
    decode = path in ("dec", "tc")
    batch = random_batch(pick, decode)
    rule = Rule(causal=not decode and pick.random() < 0.6, scale=pick.choice([None, 0.3]))
    check(path, batch, rule, pick.choice(["tuple", "stacked"]), pick.choice(["NHD", "HND"]))


@pytest.mark.parametrize("path", PATHS)
@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_window_and_soft_cap(path: str, seed: int) -> None:
    pick = random.Random(seed)
    decode = path in ("dec", "tc")
    batch = random_batch(pick, decode)
    rule = Rule(
        causal=not decode and pick.random() < 0.6,
        left=pick.choice([0, 1, 5, 16, 100]),
        cap=pick.choice([1.5, 30.0]),
        scale=pick.choice([None, 0.05]),
    )
    check(path, batch, rule, pick.choice(["tuple", "stacked"]), pick.choice(["NHD", "HND"]))


@pytest.mark.parametrize("path", ["dec", "fa2"])
def test_bfloat16(path: str) -> None:
    q_lens = (1, 1, 1) if path == "dec" else (3, 17, 2)
    batch = paged(q_lens, (40, 17, 0), dtype=torch.bfloat16, seed=3)
    check(path, batch, Rule(causal=path == "fa2"))


@pytest.mark.parametrize("path", ["dec", "fa2"])
def test_alibi_adds_a_slope_times_the_distance(path: str) -> None:
    """The distance is kv - row and not kv - position: outputs are those of true distances, the LSE isn't."""
    q_lens = (1, 1, 1) if path == "dec" else (3, 17, 2)
    for heads in ((8, 2), (12, 2)):
        batch = paged(q_lens, (40, 17, 5), heads=heads, seed=4)
        n = 2 ** int(math.log2(heads[0]))
        powers = [8 * (i + 1) / n for i in range(n)] + [4 * (2 * i + 1) / n for i in range(heads[0] - n)]
        slopes = torch.tensor([2.0**-p for p in powers], dtype=torch.float64)
        check(path, batch, Rule(causal=path == "fa2", slopes=slopes), pos_encoding_mode="ALIBI")


@pytest.mark.parametrize("path", ["dec", "fa2"])
@pytest.mark.parametrize("scaling", [(None, None), (2.0, 5e4)])
def test_rope_inside_the_kernel(path: str, scaling: tuple[float | None, float | None]) -> None:
    """Keys are rotated by their position in KV, rows of q by that of their own token."""
    q_lens = (1, 1, 1) if path == "dec" else (3, 17, 2)
    batch = paged(q_lens, (40, 17, 5), seed=5)
    scale, theta = scaling
    rule = Rule(causal=path == "fa2", rope=(scale or 1.0, theta or 1e4))
    check(path, batch, rule, pos_encoding_mode="ROPE_LLAMA", rope_scale=scale, rope_theta=theta)


@pytest.mark.parametrize("path", ["fa2", "fa3"])
def test_no_rows_and_kv_shorter_than_q(path: str) -> None:
    batch = paged((6, 0, 5, 1), (3, 9, 0, 33), page_size=4, seed=6)
    check(path, batch, Rule(causal=True))
    check(path, batch, Rule(causal=False))


@pytest.mark.parametrize("path", ["fa2", "fa3"])
def test_lse_base_and_layout(path: str) -> None:
    batch = paged((3, 4), (20, 9), seed=7)
    wrapper = planned(path, batch, Rule(causal=True))
    _, natural = batch.want(Rule(causal=True))
    cache = batch.cache("tuple", "NHD")
    _, lse = wrapper.run(batch.q, cache, return_lse=True, lse_base="ln", lse_layout="HN")
    close(lse, natural.t(), batch.q.dtype, lse=True)


@pytest.mark.parametrize("path", PATHS)
def test_out_and_lse_are_written_where_the_caller_says(path: str) -> None:
    batch = paged((1, 1), (20, 9), seed=8)
    wrapper = planned(path, batch, Rule())
    want, natural = batch.want(Rule())
    out = torch.empty_like(batch.q)
    lse = torch.empty(batch.q.shape[:2], dtype=torch.float32, device=DEVICE)
    got, told = wrapper.run(batch.q, batch.cache("tuple", "NHD"), out=out, lse=lse, return_lse=True)
    assert got.data_ptr() == out.data_ptr()
    assert told.data_ptr() == lse.data_ptr()
    close(out, want, batch.q.dtype)
    close(lse, natural / math.log(2), batch.q.dtype, lse=True)


@pytest.mark.parametrize("path", PATHS)
def test_an_lse_that_is_given_is_filled_though_not_returned(path: str) -> None:
    batch = paged((1, 1), (20, 9), seed=8)
    wrapper = planned(path, batch, Rule())
    want, natural = batch.want(Rule())
    lse = torch.full(batch.q.shape[:2], 7.0, device=DEVICE)
    out = wrapper.run(batch.q, batch.cache("tuple", "NHD"), lse=lse)
    close(out, want, batch.q.dtype)
    close(lse, natural / math.log(2), batch.q.dtype, lse=True)


@pytest.mark.parametrize("path", PATHS)
def test_sinks_given_to_run_are_not_used(path: str) -> None:
    """These kernels have none: the library drops them without a word, the strict fake says so."""
    batch = paged((1, 1), (20, 9), seed=9)
    wrapper = planned(path, batch, Rule())
    cache = batch.cache("tuple", "NHD")
    sinks = torch.full((8,), 5.0, device=DEVICE)
    if REAL:
        close(wrapper.run(batch.q, cache, sinks=sinks), batch.want(Rule())[0], batch.q.dtype)
    else:
        with pytest.raises(RuntimeError, match="doesn't have them"):
            wrapper.run(batch.q, cache, sinks=sinks)
