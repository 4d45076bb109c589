"""BatchAttention against dense attention in float64: mixed batches, split KV, page sizes, layouts, causal or not."""

from __future__ import annotations

import math

import flashinfer
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, close, i32, normal, rng, there

HEAD_DIM = 64


def dense(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """q [n, heads, d], k and v [kv_len, kv_heads, d], on the CPU: out and base-2 LSE in float64. Rows that see nothing
    (no KV, or under causal KV shorter than q) are 0 with LSE -inf."""
    q, k, v = q.double(), k.double(), v.double()
    group = q.shape[1] // k.shape[1]
    scores = torch.einsum("nhd,khd->hnk", q, k.repeat_interleave(group, 1)) * scale
    if causal:
        n, kv_len = q.shape[0], k.shape[0]
        scores = scores.masked_fill(torch.ones(n, kv_len, dtype=torch.bool).triu(kv_len - n + 1), -math.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    out = torch.einsum("hnk,khd->nhd", weights, v.repeat_interleave(group, 1))
    return out, scores.logsumexp(-1).t() / math.log(2)


def check(
    qo_lens: list[int],
    kv_lens: list[int],
    *,
    heads: tuple[int, int] = (8, 2),
    page_size: int = 16,
    layout: str = "NHD",
    causal: bool = True,
    dtype: torch.dtype = torch.float16,
    stacked: bool = False,
    sm_scale: float | None = None,
    spare: int = 0,
    seed: int = 0,
    outputs: bool = False,
) -> None:
    """Plan and run a batch of random numbers and hold out and LSE to `dense`.

    spare: pages of every request that its length doesn't reach.
    """
    generator = rng(seed)
    pages = [-(-n // page_size) + spare for n in kv_lens]
    total = sum(pages) + 3
    shuffled = torch.randperm(total, generator=generator)[: sum(pages)]
    q = normal(generator, sum(qo_lens), heads[0], HEAD_DIM, dtype=dtype)
    cache = normal(generator, total, 2, page_size, heads[1], HEAD_DIM, dtype=dtype)
    k, v = cache.cpu().unbind(1)
    given = cache if layout == "NHD" else cache.transpose(2, 3).contiguous()
    wrapper = flashinfer.BatchAttention(layout, str(DEVICE))
    wrapper.plan(
        i32([0, *torch.tensor(qo_lens).cumsum(0).tolist()]),
        i32([0, *torch.tensor(pages).cumsum(0).tolist()]),
        there(shuffled.to(torch.int32)),
        i32(kv_lens),
        *heads,
        HEAD_DIM,
        HEAD_DIM,
        page_size,
        causal=causal,
        sm_scale=sm_scale,
        q_data_type=dtype,
        kv_data_type=dtype,
    )
    into = {"out": torch.empty_like(q), "lse": torch.empty(q.shape[:2], device=DEVICE)} if outputs else {}
    out, lse = wrapper.run(q, given if stacked else tuple(given.unbind(1)), **into)
    if outputs:
        assert out is into["out"]
        assert lse is into["lse"]
    assert out.dtype == dtype
    assert lse.dtype == torch.float32
    first_q = first_page = 0
    scale = HEAD_DIM**-0.5 if sm_scale is None else sm_scale
    for n, kv_len, count in zip(qo_lens, kv_lens, pages, strict=True):
        rows, mine = slice(first_q, first_q + n), shuffled[first_page : first_page + count]
        first_q, first_page = first_q + n, first_page + count
        if n:
            flat_k, flat_v = (part[mine].flatten(0, 1)[:kv_len] for part in (k, v))
            want, want_lse = dense(q.cpu()[rows], flat_k, flat_v, causal, scale)
            close(out[rows], want, dtype)
            close(lse[rows], want_lse, dtype, lse=True)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    requests=st.lists(
        st.tuples(st.sampled_from([0, 1, 1, 2, 5, 40, 130]), st.sampled_from([0, 1, 3, 17, 90, 400])),
        min_size=1,
        max_size=6,
    ).filter(lambda found: any(n for n, _ in found)),
    heads=st.sampled_from([(8, 2), (4, 4), (8, 1), (6, 2)]),
    page_size=st.sampled_from([1, 5, 16]),
    layout=st.sampled_from(["NHD", "HND"]),
    causal=st.booleans(),
    stacked=st.booleans(),
    spare=st.sampled_from([0, 0, 2]),
    seed=st.integers(0, 2**20),
)
def test_any_batch_agrees_with_dense_attention(
    requests: list[tuple[int, int]],
    heads: tuple[int, int],
    page_size: int,
    layout: str,
    causal: bool,
    stacked: bool,
    spare: int,
    seed: int,
) -> None:
    check(
        [n for n, _ in requests],
        [kv_len for _, kv_len in requests],
        heads=heads,
        page_size=page_size,
        layout=layout,
        causal=causal,
        stacked=stacked,
        spare=spare,
        seed=seed,
    )


@pytest.mark.parametrize("causal", [False, True])
def test_long_kv_is_split_and_merged(causal: bool) -> None:
    check([1, 300, 1], [6000, 5000, 2], causal=causal)


def test_bfloat16_is_what_plan_takes_unless_told() -> None:
    check([3, 1], [40, 300], dtype=torch.bfloat16)
    wrapper = flashinfer.BatchAttention(device=str(DEVICE))
    q = normal(rng(1), 1, 4, HEAD_DIM, dtype=torch.bfloat16)
    cache = normal(rng(2), 2, 16, 4, HEAD_DIM, dtype=torch.bfloat16)
    wrapper.plan(i32([0, 1]), i32([0, 2]), i32([1, 0]), i32([20]), 4, 4, HEAD_DIM, HEAD_DIM, 16)
    out, lse = wrapper.run(q, (cache, cache))
    tokens = torch.cat([cache[1], cache[0]]).cpu()[:20]
    want, want_lse = dense(q.cpu(), tokens, tokens, False, HEAD_DIM**-0.5)
    close(out, want, torch.bfloat16)
    close(lse, want_lse, torch.bfloat16, lse=True)


def test_scale_of_its_own_and_given_outputs() -> None:
    check([2, 9], [30, 77], sm_scale=0.3, outputs=True)


def test_indices_are_read_at_run() -> None:
    wrapper = flashinfer.BatchAttention(device=str(DEVICE))
    generator = rng(3)
    q = normal(generator, 1, 2, HEAD_DIM, dtype=torch.float16)
    cache = normal(generator, 4, 16, 2, HEAD_DIM, dtype=torch.float16)
    indices = i32([0, 1])
    wrapper.plan(
        i32([0, 1]),
        i32([0, 2]),
        indices,
        i32([32]),
        2,
        2,
        HEAD_DIM,
        HEAD_DIM,
        16,
        q_data_type=torch.float16,
        kv_data_type=torch.float16,
    )
    for pages in ([0, 1], [3, 2]):
        indices.copy_(i32(pages))
        tokens = torch.cat([cache[p] for p in pages]).cpu()
        out, _ = wrapper.run(q, (cache, cache))
        close(out, dense(q.cpu(), tokens, tokens, False, HEAD_DIM**-0.5)[0], torch.float16)
