"""FlashAttention 3 of sgl_kernel, over pages and over contiguous K and V, against dense attention in float64."""

from __future__ import annotations

import random

import pytest
import torch
from dense import GROUPS, Rule, attention, paged, random_lengths, sums
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, FLOATS, close, i32, normal, rng
from sgl_kernel.flash_attn import flash_attn_varlen_func, flash_attn_with_kvcache

EXAMPLES = settings(max_examples=25, derandomize=True, deadline=None)


def rule_of(pick: random.Random) -> Rule:
    left, right = pick.choice([(-1, -1), (-1, -1), (3, 0), (2, 4), (16, -1)])
    return Rule(
        causal=pick.random() < 0.6,
        left=left,
        right=right,
        cap=pick.choice([0.0, 2.5]),
        scale=pick.choice([None, 0.3]),
    )


def options_of(rule: Rule) -> dict[str, object]:
    return {
        "causal": rule.causal,
        "window_size": (rule.left, rule.right),
        "softcap": rule.cap,
        "softmax_scale": rule.scale,
        "sinks": rule.sinks,
    }


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_over_pages(seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=pick.random() < 0.3)
    dtype = pick.choice(FLOATS)
    batch = paged(
        q_lens,
        kv_lens,
        page_size=pick.choice([1, 4, 16, 64]),
        heads=pick.choice(GROUPS),
        head_dim=pick.choice([64, 128]),
        dtype=dtype,
        seed=pick.randrange(1 << 30),
    )
    rule = rule_of(pick)
    options = options_of(rule) | {
        "page_table": batch.table,
        "cache_seqlens": i32(kv_lens),
        "cu_seqlens_q": batch.qo_indptr,
        "max_seqlen_q": max(q_lens),
    }
    want, natural = batch.want(rule)
    close(flash_attn_with_kvcache(batch.q, batch.k, batch.v, **options), want, dtype, loose=rule.loose)
    out, lse, *_ = flash_attn_with_kvcache(batch.q, batch.k, batch.v, **options, return_softmax_lse=True)
    close(out, want, dtype, loose=rule.loose)
    close(lse.t(), natural, dtype, lse=True, loose=rule.loose)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_without_pages(seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False)
    if sum(kv_lens) == 0:
        kv_lens[0] = 1
    dtype, heads, dim = pick.choice(FLOATS), pick.choice(GROUPS), pick.choice([64, 128])
    generator = rng(pick.randrange(1 << 30))
    q = normal(generator, sum(q_lens), heads[0], dim, dtype=dtype)
    k, v = (normal(generator, sum(kv_lens), heads[1], dim, dtype=dtype) for _ in range(2))
    rule = rule_of(pick)
    parts = [
        attention(*of, rule) for of in zip(q.split(q_lens), k.split(kv_lens), v.split(kv_lens), strict=True)
    ]
    want, natural = torch.cat([out for out, _ in parts]), torch.cat([lse for _, lse in parts])
    arguments = (q, k, v, sums(q_lens), sums(kv_lens), max(q_lens), max(kv_lens))
    close(flash_attn_varlen_func(*arguments, **options_of(rule)), want, dtype, loose=rule.loose)
    out, lse, *_ = flash_attn_varlen_func(*arguments, **options_of(rule), return_softmax_lse=True)
    close(out, want, dtype, loose=rule.loose)
    close(lse.t(), natural, dtype, lse=True, loose=rule.loose)


def with_sinks(causal: bool) -> Rule:
    sinks = torch.randn(8, generator=rng(7)).to(torch.bfloat16).to(DEVICE)
    return Rule(causal=causal, sinks=sinks)


@pytest.mark.parametrize("causal", [False, True])
def test_sinks_over_pages(causal: bool) -> None:
    batch = paged([3, 17, 1], [9, 40, 5], head_dim=64, dtype=torch.bfloat16, seed=2)
    rule = with_sinks(causal)
    out = flash_attn_with_kvcache(
        batch.q,
        batch.k,
        batch.v,
        **options_of(rule),
        page_table=batch.table,
        cache_seqlens=i32(batch.kv_lens),
        cu_seqlens_q=batch.qo_indptr,
        max_seqlen_q=17,
    )
    close(out, batch.want(rule)[0], torch.bfloat16)


def test_sinks_without_pages() -> None:
    generator = rng(3)
    q = normal(generator, 12, 8, 64, dtype=torch.bfloat16)
    k, v = (normal(generator, 30, 2, 64, dtype=torch.bfloat16) for _ in range(2))
    rule = with_sinks(True)
    parts = [
        attention(*of, rule) for of in zip(q.split([5, 7]), k.split([11, 19]), v.split([11, 19]), strict=True)
    ]
    out = flash_attn_varlen_func(q, k, v, sums([5, 7]), sums([11, 19]), 7, 19, **options_of(rule))
    close(out, torch.cat([part for part, _ in parts]), torch.bfloat16)


def test_the_lse_includes_the_sink() -> None:
    batch = paged([4, 1], [9, 20], head_dim=64, dtype=torch.bfloat16, seed=4)
    rule = with_sinks(True)
    _, lse, *_ = flash_attn_with_kvcache(
        batch.q,
        batch.k,
        batch.v,
        **options_of(rule),
        page_table=batch.table,
        cache_seqlens=i32(batch.kv_lens),
        cu_seqlens_q=batch.qo_indptr,
        max_seqlen_q=4,
        return_softmax_lse=True,
    )
    close(lse.t(), batch.want(rule)[1], torch.bfloat16, lse=True)


def test_rows_of_one_length_need_no_sums() -> None:
    batch = paged([3, 3], [5, 9], page_size=4, seed=5)
    out = flash_attn_with_kvcache(
        batch.q.view(2, 3, 8, 64),
        batch.k,
        batch.v,
        page_table=batch.table,
        cache_seqlens=i32(batch.kv_lens),
        causal=True,
    )
    close(out.flatten(0, 1), batch.want(Rule(causal=True))[0], batch.q.dtype)
