"""As `test_fake_hostile`, for everything without pages, for levels, blocks, masks and sinks: whatever stands in the
arrays, a strict fake answers with a KernelError or with numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_batches import cumulated, i32, make_batch
from sgl_kernel.flash_attn import flash_attn_varlen_func
from test_fake_hostile import spoil

SPACE = torch.empty(1 << 20, dtype=torch.uint8)
Q_LENS, KV_LENS = (2, 1, 1, 3), (20, 0, 33, 16)
BITS = sum(n * kv for n, kv in zip(Q_LENS, KV_LENS, strict=True))
Q = torch.randn(sum(Q_LENS), 8, 8, dtype=torch.float16)
K, V = (torch.randn(sum(KV_LENS), 2, 8, dtype=torch.float16) for _ in range(2))
RAGGED = {"qo_indptr": cumulated(Q_LENS), "kv_indptr": cumulated(KV_LENS)}
MASK = torch.rand(BITS) < 0.5
PAGED = make_batch((20, 9, 33, 16), Q_LENS, page_size=4, head_dim=8)
SPARE = sorted(set(range(len(PAGED.k))) - set(PAGED.indices.tolist()))
"""Pages that belong to nobody: what two levels list is seen twice."""
Arrays = dict[str, Any]


def ragged(a: Arrays) -> torch.Tensor:
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(SPACE, backend="fa2")
    wrapper.plan(num_qo_heads=8, num_kv_heads=2, head_dim_qk=8, **a)
    return wrapper.run(Q, K, V)


def masked(a: Arrays) -> torch.Tensor:
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(SPACE, backend="fa2")
    arrays = (PAGED.qo_indptr, PAGED.indptr, PAGED.indices, PAGED.last)
    wrapper.plan(*arrays, 8, 2, 8, 4, **a)
    return wrapper.run(PAGED.q, (PAGED.k, PAGED.v))


def cascade(a: Arrays) -> torch.Tensor:
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(2, SPACE)
    levels = [[a[f"{name}{level}"] for level in (0, 1)] for name in ("qo", "indptr", "indices", "last")]
    wrapper.plan(*levels, 8, 2, 8, 4)
    return wrapper.run(PAGED.q, (PAGED.k, PAGED.v))


def blocks(a: Arrays) -> torch.Tensor:
    wrapper = flashinfer.BlockSparseAttentionWrapper(SPACE)
    wrapper.plan(a["indptr"], a["indices"], 7, 16, 4, 4, 8, 2, 8, mask=a["mask"])
    return wrapper.run(Q, K[:16], V[:16])


def variable(a: Arrays) -> torch.Tensor:
    wrapper = flashinfer.VariableBlockSparseAttentionWrapper(SPACE)
    wrapper.plan(a["map"], a["rows"], a["columns"], 8, 2, 8)
    return wrapper.run(Q.transpose(0, 1), K[:16].transpose(0, 1), V[:16].transpose(0, 1)).transpose(0, 1)


def varlen(a: Arrays) -> torch.Tensor:
    return flash_attn_varlen_func(Q, K, V, **a, max_seqlen_q=3, max_seqlen_k=33)


def with_sinks(a: Arrays) -> torch.Tensor:
    wrapper = flashinfer.BatchAttentionWithAttentionSinkWrapper(
        SPACE, q_data_type=torch.float16, kv_data_type=torch.float16, head_dim_qk=8, head_dim_vo=8
    )
    wrapper.plan(PAGED.qo_indptr, PAGED.indptr, PAGED.indices, PAGED.last, 8, 2, 8, 4)
    return wrapper.run(PAGED.q, (PAGED.k, PAGED.v), a["sinks"])


def single(a: Arrays) -> torch.Tensor:
    return flashinfer.single_prefill_with_kv_cache(Q, K[:20], V[:20], **a)


def bits(a: Arrays) -> torch.Tensor:
    packed, _ = flashinfer.segment_packbits(a["x"], a["indptr"], "little")
    return flashinfer.packbits(packed, "little").new_zeros(Q.shape)


def odd(tensor: torch.Tensor, rng: random.Random) -> object:
    """`spoil`, also for bytes, which don't hold its numbers."""
    if tensor.dtype != torch.uint8:
        return spoil(tensor, rng)
    spoilt = spoil(tensor.int(), rng)
    fits = isinstance(spoilt, torch.Tensor) and spoilt.dtype == torch.int32
    return spoilt.to(torch.uint8) if fits and rng.random() < 0.8 else spoilt


TARGETS: dict[str, tuple[Callable[[Arrays], torch.Tensor], Arrays]] = {
    "ragged": (ragged, RAGGED),
    "ragged masked": (ragged, {**RAGGED, "custom_mask": MASK}),
    "paged masked": (masked, {"custom_mask": torch.rand(40 + 9 + 33 + 48) < 0.5}),
    "paged packed": (masked, {"packed_custom_mask": torch.zeros(200, dtype=torch.uint8)}),
    "cascade": (
        cascade,
        {
            "qo0": i32([0, 7]),
            "indptr0": i32([0, 2]),
            "indices0": i32(SPARE[:2]),
            "last0": i32([4]),
            "qo1": PAGED.qo_indptr,
            "indptr1": PAGED.indptr,
            "indices1": PAGED.indices,
            "last1": PAGED.last,
        },
    ),
    "blocks": (
        blocks,
        {"indptr": i32([0, 2, 3]), "indices": i32([0, 3, 1]), "mask": torch.rand(3, 4, 4) < 0.5},
    ),
    "variable": (
        variable,
        {
            "map": torch.ones(2, 2, 3, dtype=torch.bool),
            "rows": i32([4, 3, 2, 5]).view(2, 2),
            "columns": i32([4, 4, 8, 6, 10, 0]).view(2, 3),
        },
    ),
    "varlen": (varlen, {"cu_seqlens_q": cumulated(Q_LENS), "cu_seqlens_k": cumulated(KV_LENS)}),
    "sinks": (with_sinks, {"sinks": torch.zeros(8)}),
    "single": (single, {"custom_mask": torch.rand(7, 20) < 0.5}),
    "bits": (bits, {"x": MASK, "indptr": i32([0, 9, 9, BITS])}),
}


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_right_is_answered(name: str) -> None:
    call, arrays = TARGETS[name]
    assert call(arrays).shape == Q.shape


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), which=st.sampled_from(["strict", "faithful"]))
def test_anything_is_answered(name: str, seed: int, which: str) -> None:
    rng = random.Random(seed)
    call, arrays = TARGETS[name]
    spoilt = dict(arrays)
    for key in rng.sample(sorted(arrays), rng.randint(1, min(2, len(arrays)))):
        spoilt[key] = odd(arrays[key], rng)
    mode.new_context()
    with mode.use(which):
        try:
            assert call(spoilt).shape == Q.shape
        except KernelError as refusal:
            refusal.text("zh")
        except (RuntimeError, ValueError, AttributeError, AssertionError):
            if which == "strict":
                raise
