"""Wrong calls of the operators without a plan (norms, activations, merging, rotary embedding, page operations, routing),
each as it was made on an H200, and what came of it there.
"""

from __future__ import annotations

import math
from typing import Any

import flashinfer
import pytest
import sgl_kernel
import torch
from fake_kernels import mode
from measured_cases import Case, check_faithful, check_strict
from paged_batches import i32

H = torch.float16
NAN, INF = math.nan, math.inf
MISALIGNED = "misaligned address"
ILLEGAL = "an illegal memory access was encountered"


def rows(*shape: int, seed: int = 1, dtype: torch.dtype = H) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def normed(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], eps=1e-6)


def ones(*shape: int, dtype: torch.dtype = H) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


def weight_in_float() -> list[float]:
    """Halves of a float32 one are 0 and 1.875: each number of the result over that of a right call."""
    x = rows(4, 64)
    return (flashinfer.rmsnorm(x, ones(64, dtype=torch.float32)).float() / normed(x)).flatten()[:4].tolist()


def out_in_float() -> list[float]:
    """The half numbers stand in the first half of the memory, the rest is as before."""
    x, out = rows(4, 64), torch.full((4, 64), 7.0)
    flashinfer.rmsnorm(x, ones(64), out=out)
    right = flashinfer.rmsnorm(x, ones(64))
    return [
        float((out.view(H).flatten()[:256].view(4, 64) - right).abs().max()),
        *out.flatten()[128:130].tolist(),
    ]


def residual_in_float(fill: float) -> list[float]:
    x, residual = rows(4, 64), torch.full((4, 64), fill)
    right = normed(x)
    flashinfer.fused_add_rmsnorm(x, residual, ones(64))
    return [float(bool((x.float() - right).abs().max() < 2e-3))]


def same_tensor() -> list[float]:
    x = rows(4, 64)
    right = normed(2 * x.float())
    flashinfer.fused_add_rmsnorm(x, x, ones(64))
    return [float(bool((x.float() - right).abs().max() < 2e-3))]


def strided_activation() -> list[float]:
    """Taken for a contiguous tensor: the second row begins where the first one's memory goes on."""
    wide = rows(4, 256)
    got = flashinfer.silu_and_mul(wide[:, :128])
    return [
        float((got[i] - flashinfer.silu_and_mul(wide.flatten()[128 * i :][:128][None])).abs().max())
        for i in range(4)
    ]


def merged_v2(s_a: float, s_b: float) -> list[float]:
    v = ones(2, 4, 64)
    out, lse = sgl_kernel.merge_state_v2(v, torch.full((2, 4), s_a), v, torch.full((2, 4), s_b))
    return [*out.flatten()[:2].tolist(), *lse.flatten()[:2].tolist()]


NORMS = {
    "weight in float32": Case("dtypes_differ", weight_in_float, [0.0, 1.875, 0.0, 1.875]),
    "out in float32": Case("dtypes_differ", out_in_float, [0.0, 7.0, 7.0]),
    "residual of zeros in float32": Case("dtypes_differ", lambda: residual_in_float(0.0), [1.0]),
    "residual of ones in float32": Case("dtypes_differ", lambda: residual_in_float(1.0), [0.0]),
    "one tensor twice": Case("same_memory", same_tensor, [1.0]),
    "weight too short": Case(
        "shapes_differ",
        lambda: flashinfer.rmsnorm(rows(4, 64), ones(32)),
        (RuntimeError, "input.size(1) == weight.size(0) (64 vs. 32)"),
    ),
    "residual of other rows": Case(
        "shapes_differ",
        lambda: flashinfer.fused_add_rmsnorm(rows(4, 64), rows(3, 64), ones(64)),
        (RuntimeError, "residual.size(0) == batch_size (3 vs. 4)"),
    ),
    "strided input": Case(
        "last_dim_not_contiguous",
        lambda: flashinfer.rmsnorm(rows(4, 128)[:, ::2], ones(64)),
        (RuntimeError, "input.stride(-1) == 1 (2 vs. 1)"),
    ),
    "strided activation": Case("not_contiguous", strided_activation, [0.0] * 4),
    "odd width": Case(
        "odd_width",
        lambda: flashinfer.silu_and_mul(rows(4, 65)),
        (ValueError, "The last dimension must be even (2 * hidden_size)."),
    ),
    "two empty states": Case("both_states_empty", lambda: merged_v2(-INF, -INF), [NAN] * 4),
}


Q, K = rows(3, 4, 64), rows(3, 2, 64, seed=2)
CACHE = torch.randn(8, 64, generator=torch.Generator().manual_seed(3))


def by_ids(*positions: int, q: torch.Tensor = Q, k: torch.Tensor = K, **options: Any) -> Any:
    return flashinfer.apply_rope_pos_ids(q, k, i32(positions), **options)


def cached_row(position: int) -> list[float]:
    told = flashinfer.apply_rope_with_cos_sin_cache(
        i32([0, 7, position]), Q.flatten(1), K.flatten(1), 64, CACHE
    )
    return told[0][2, :4].tolist()


def wrong_of(rotary_dim: int) -> list[int]:
    """Dimensions in which turning by an odd number of 64 differs from turning by one less."""
    got = by_ids(1, 2, 3, rotary_dim=rotary_dim)[0].float()
    right = by_ids(1, 2, 3, q=Q.float(), k=K.float(), rotary_dim=rotary_dim - 1)[0]
    return ((got - right).abs() > 1e-2).any(dim=0).any(dim=0).nonzero().flatten().tolist()


def spilt(position: int) -> list[float]:
    """Whether 36 dimensions of 64 in pairs are right, and how many of the others are not as they were."""
    got = by_ids(position, position, position, rotary_dim=36, interleave=True)[0]
    return [float(((got - Q).abs() > 1e-2).any(dim=0).any(dim=0)[36:].sum())]


def missing_position() -> list[float]:
    """Rows with a position are right; what lies behind turns the third."""
    got, right = by_ids(1, 2)[0], by_ids(1, 2, 3)[0]
    return [float((got[:2] - right[:2]).abs().max()), float(torch.equal(got[2], right[2]))]


def other_type() -> list[float]:
    """k in bfloat16 under a q in float16: q is right, k is turned as if its bits were float16."""
    k = K.bfloat16()
    got, right = by_ids(1, 2, 3, k=k), by_ids(1, 2, 3, k=k.view(H))
    return [float((a.view(H) != b).sum()) for a, b in zip(got, right, strict=True)]


def short_indptr() -> list[float]:
    q, k = rows(5, 4, 64), rows(5, 2, 64, seed=2)
    got = flashinfer.apply_rope(q, k, i32([0, 2, 4]), i32([3, 4]))[0]
    right = flashinfer.apply_rope(q[:4], k[:4], i32([0, 2, 4]), i32([3, 4]))[0]
    return [float((got[:4] - right).abs().max()), *got[4, 0, :4].tolist()]


def negative_position() -> list[float]:
    """Turned back by as much as position 2 turns: there and back again."""
    there = by_ids(1, -2, 3)
    return [float((by_ids(0, 2, 0, q=there[0], k=there[1])[0][1] - Q[1]).abs().max() < 5e-3)]


# Measured: with these dimensions, and only these, a thread's vector has other angles or turns that should not.
WRONG_33 = [1, 2, 3, 4, 5, 7, 17, 18, 19, 20, 21, 22, 32, 33, 34, 35, 36, 37, 38, 39]
ROPE = {
    **{
        f"{dim} of 64": Case("rotary_dim_unaligned", lambda d=dim: by_ids(1, 2, 3, rotary_dim=d), MISALIGNED)
        for dim in (24, 36, 40)
    },
    "an odd number": Case("rotary_dim_wrong", lambda: wrong_of(33), WRONG_33),
    "pairs, at position 3": Case("rotary_dim_unaligned", lambda: spilt(3), [0.0]),
    "pairs, at position 9000": Case("rotary_dim_unaligned", lambda: spilt(9000), [4.0]),
    "one row behind the cache": Case("position_out_of_cache", lambda: cached_row(8), [0.0] * 4),
    "far behind the cache": Case("position_out_of_cache", lambda: cached_row(800_000_000), ILLEGAL),
    "too few positions": Case("rows_differ", missing_position, [0.0, 0.0]),
    "negative position": Case("position_negative", negative_position, [1.0]),
    "indptr too short": Case("indptr_wrong", short_indptr, [0.0] * 5),
    "types of q and k": Case("dtypes_differ", other_type, [0.0, 0.0]),
    "positions in float": Case(
        "not_integers",
        lambda: flashinfer.apply_rope_pos_ids(Q, K, torch.tensor([1.0, 2.0, 3.0])),
        (RuntimeError, "failed to dispatch data type"),
    ),
    "strided q": Case(
        "last_dim_not_contiguous",
        lambda: by_ids(1, 2, 3, q=rows(3, 4, 128)[..., ::2]),
        (RuntimeError, "q.stride(-1) == 1 (2 vs. 1)"),
    ),
    "strided query": Case(
        "last_dim_not_contiguous",
        lambda: flashinfer.apply_rope_with_cos_sin_cache(
            i32([1]), rows(1, 128)[:, ::2], rows(1, 64), 64, CACHE
        ),
        (RuntimeError, "q.stride(-1) == 1 (2 vs. 1)"),
    ),
    "strided cache": Case(
        "not_contiguous",
        lambda: flashinfer.apply_rope_with_cos_sin_cache(
            i32([0, 7, 2]), Q.flatten(1), K.flatten(1), 64, torch.zeros(8, 128)[:, :64]
        ),
        (RuntimeError, "cos_sin_cache must be contiguous"),
    ),
}


def append(
    requests: list[int],
    positions: list[int] | torch.Tensor,
    indices: tuple[int, ...] = (4, 1, 3),
    key: torch.Tensor | None = None,
    layout: str = "NHD",
) -> list[list[float]]:
    """Two requests, on pages 4, 1 and 3, of 6 and 3 tokens on pages of 4; the rows hold 1, 2, ... Returns page, entry and
    value of every place that was written."""
    pool = torch.zeros(6, 2, 4, 2, 64, dtype=H)
    count = len(requests)
    told = (
        torch.arange(1, count + 1, dtype=H)[:, None, None].expand(count, 2, 64).contiguous()
        if key is None
        else key
    )
    where = positions if isinstance(positions, torch.Tensor) else i32(positions)
    flashinfer.append_paged_kv_cache(
        told, told, i32(requests), where, pool, i32(indices), i32([0, 2, 3]), i32([2, 3]), layout
    )
    return [[p, e, float(pool[p, 0, e, 0, 0])] for p, e in (pool[:, 0, :, 0, 0] != 0).nonzero().tolist()]


def batch_indices(*arguments: Any) -> list[list[int]]:
    return [one.tolist() for one in flashinfer.get_batch_indices_positions(*arguments)]


PAGES = {
    "a row that was not filled": Case("batch_index_unfilled", lambda: append([0, -1], [1, 0]), ILLEGAL),
    "a request too many": Case(
        "batch_index_out_of_range", lambda: append([0, 2], [1, 0]), [[0, 0, 2.0], [4, 1, 1.0]]
    ),
    "in front of its pages": Case(
        "position_negative", lambda: append([0, 1], [1, -1]), [[1, 3, 2.0], [4, 1, 1.0]]
    ),
    "behind its pages": Case(
        "position_beyond_pages", lambda: append([0, 0], [1, 9]), [[3, 1, 2.0], [4, 1, 1.0]]
    ),
    "behind its length": Case(
        "position_beyond_length", lambda: append([1, 1], [2, 3]), [[3, 2, 1.0], [3, 3, 2.0]]
    ),
    "one place twice": Case("slot_written_twice", lambda: append([0, 0], [1, 1]), [[4, 1, 2.0]]),
    "a page close behind the cache": Case(
        "page_out_of_range", lambda: append([0, 1], [1, 0], (4, 1, 60)), [[4, 1, 1.0]]
    ),
    "a page far behind the cache": Case(
        "page_out_of_range", lambda: append([0, 1], [1, 0], (4, 1, 60_000_000)), ILLEGAL
    ),
    "positions in float": Case(
        "not_integers", lambda: append([0, 1], torch.tensor([1.7, 0.2])), [[3, 0, 2.0], [4, 1, 1.0]]
    ),
    "keys in bfloat16": Case(
        "dtypes_differ",
        lambda: append([0, 1], [1, 0], key=ones(2, 2, 64, dtype=torch.bfloat16)),
        [[3, 0, 1.875], [4, 1, 1.875]],
    ),
    "more heads": Case(
        "shapes_differ",
        lambda: append([0, 1], [1, 0], key=ones(2, 4, 64)),
        (RuntimeError, "append_key.size(1) == num_heads (4 vs. 2)"),
    ),
    "the other layout": Case(
        "shapes_differ",
        lambda: append([0, 1], [1, 0], layout="HND"),
        (RuntimeError, "append_key.size(1) == num_heads (2 vs. 4)"),
    ),
    "fewer rows": Case(
        "rows_differ",
        lambda: append([0, 1], [1, 0], key=ones(1, 2, 64)),
        (RuntimeError, "batch_indices.size(0) == nnz (2 vs. 1)"),
    ),
    "lengths of before": Case(
        "seq_lens_without_appended",
        lambda: batch_indices(i32([0, 3, 4]), i32([1, 5]), 4),
        [[0, 0, 0, 1], [-2, -1, 0, 4]],
    ),
    "less room than rows": Case(
        "nnz_too_small", lambda: batch_indices(i32([0, 3, 6]), i32([3, 3]), 4), [[0, 0, 0, 1], [0, 1, 2, 0]]
    ),
    "a length missing": Case(
        "seq_lens_wrong_count",
        lambda: batch_indices(i32([0, 3, 4]), i32([3]), 4),
        [[0, 0, 0, 1], [0, 1, 2, -1]],
    ),
}


def align(*ids: int, room: int = 80, blocks: int = 8) -> list[int]:
    """Four experts, blocks of 16, buffers at the beginning of longer memory that holds 777. Returns places in use, experts
    of the first four blocks, and the first pair of each block, also behind the buffers."""
    places, experts = (torch.full((n,), 777, dtype=torch.int32) for n in (400, 40))
    used, sums = i32([0]), torch.zeros(6, dtype=torch.int32)
    sgl_kernel.moe_align_block_size(
        i32(ids).view(-1, 1), 5, 16, places[:room], experts[:blocks], used, sums, True
    )
    return [*used.tolist(), *experts[:4].tolist(), *places[:64:16].tolist()]


def routed() -> list[float]:
    weights, ids = torch.empty(1, 3), torch.empty(1, 3, dtype=torch.int32)
    sgl_kernel.topk_softmax(weights, ids, torch.tensor([[1.0, NAN, 3.0, 2.0, 0, 0, 0, 0]]))
    return [*weights[0].tolist(), *ids[0].tolist()]


EXPERTS = {
    "an expert too many": Case(
        "expert_out_of_range", lambda: align(0, 1, 2, 9, 0), [64, -1, 0, 1, 2, 3, 0, 1, 2]
    ),
    "an id of -2": Case("expert_out_of_range", lambda: align(0, 1, 2, -2, 0), [64, 0, 1, 2, 3, 0, 1, 2, 3]),
    "blocks without room": Case(
        "buffer_too_small", lambda: align(0, 1, 2, 3, 0, blocks=2), [64, 0, 1, 2, 3, 0, 1, 2, 3]
    ),
    "tokens without room": Case(
        "buffer_too_small", lambda: align(0, 1, 2, 3, 0, room=20), [64, 0, 1, 2, 3, 0, 1, 2, 3]
    ),
    "NaN": Case("row_has_nan", routed, [NAN, -10000.0, -10000.0, 0, 0, 0]),
    "more experts a token than there are": Case(
        "routing_shapes",
        lambda: sgl_kernel.topk_softmax(torch.empty(4, 9), torch.empty(4, 9).int(), torch.randn(4, 8)),
        (RuntimeError, "topk must be less than or equal to num_experts"),
    ),
}

CASES = [
    pytest.param(case, id=name) for table in (NORMS, ROPE, PAGES, EXPERTS) for name, case in table.items()
]


@pytest.mark.parametrize("case", CASES)
def test_strict_tells_what_was_measured(case: Case) -> None:
    check_strict(case)


@pytest.mark.parametrize("case", CASES)
def test_faithful_acts_it_out(case: Case) -> None:
    check_faithful(case)


def test_unwritten_rows_of_a_rotation_in_place_stay() -> None:
    q, k = rows(5, 4, 64), rows(5, 2, 64, seed=2)
    before = q.clone()
    with mode.use("faithful"):
        flashinfer.apply_rope_inplace(q, k, i32([0, 2, 4]), i32([3, 4]))
    assert torch.equal(q[4], before[4])
    assert not torch.equal(q[3], before[3])


@pytest.mark.parametrize("which", ["strict", "faithful"])
def test_what_the_library_answers_rightly_is_no_mistake(which: str) -> None:
    with mode.use(which):
        for given, got in zip((Q, K), by_ids(1, 2, 3, rotary_dim=0), strict=True):
            assert torch.equal(given, got)
        ids = torch.tensor([0, 1, 2, 3, 0]).view(-1, 1)
        buffers = (torch.empty(80).int(), torch.empty(8).int(), i32([0]), torch.empty(6).int())
        sgl_kernel.moe_align_block_size(ids, 5, 16, *buffers, True)
        assert buffers[1][:4].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("which", ["strict", "faithful"])
def test_a_state_of_infinite_weight_is_nan_without_a_word(which: str) -> None:
    with mode.use(which):
        assert all(math.isnan(value) for value in merged_v2(INF, 0.0))
