"""Wrong calls of BatchAttention, of KV without pages, block masks, cascades and FlashAttention, each as it was made on an
H200: rows that came out as a hypothesis said there must do so here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from measured_cases import Case, check_faithful, check_strict
from paged_batches import PagedBatch, cumulated, i32, make_batch, table_of, tokens_of
from sgl_kernel.flash_attn import flash_attn_varlen_func, flash_attn_with_kvcache

H = torch.float16
Q_LENS, KV_LENS = (3, 5, 2), (20, 40, 9)
SPACE = torch.empty(1 << 22, dtype=torch.uint8)
FA = ("fa2", "fa3")
BOTH_SUMS = "batch_size must be equal to batch_size_k"


def dense(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = True, cap: float = 0.0
) -> torch.Tensor:
    """Attention of one request from its definition, float64 [rows, heads, head_dim]."""
    n, kv, group = len(q), len(k), q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, dim=1) for x in (k, v))
    scores = torch.einsum("nhd,khd->hnk", q.double(), k) * q.shape[-1] ** -0.5
    scores = cap * torch.tanh(scores / cap) if cap else scores
    seen = (
        torch.arange(kv)[None] <= torch.arange(n)[:, None] + (kv - n) if causal else torch.ones(n, kv).bool()
    )
    shares = torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1).nan_to_num(0.0)
    return torch.einsum("hnk,khd->nhd", shares, v)


def equal_rows(got: torch.Tensor, want: torch.Tensor) -> list[int]:
    """For each row 1 where it is what was said, up to the rounding of half types."""
    return ((got.double() - want.double()).abs().flatten(1).amax(dim=1) < 5e-3).int().tolist()


def rows_of(per_request: Sequence[int]) -> list[int]:
    return [value for value, n in zip(per_request, Q_LENS, strict=True) for _ in range(n)]


BATCH = make_batch(KV_LENS, Q_LENS, seed=1)


def right_rows(lengths: Sequence[int] = KV_LENS, cap: float = 0.0) -> torch.Tensor:
    parts = [[tokens_of(BATCH, cache, i)[: lengths[i]] for i in range(3)] for cache in (BATCH.k, BATCH.v)]
    q = BATCH.q.split(Q_LENS)
    return torch.cat([dense(q[i], parts[0][i], parts[1][i], cap=cap) for i in range(3)])


def persistent(
    lengths: torch.Tensor | None = None,
    caps: tuple[float | None, float] = (None, 0.0),
    q: torch.Tensor | None = None,
    kv_heads: int = 2,
    page: int = 16,
) -> torch.Tensor:
    """One run of BatchAttention, into rows of 7."""
    wrapper = flashinfer.BatchAttention()
    told = i32(KV_LENS) if lengths is None else lengths
    options = {"causal": True, "logits_soft_cap": caps[0], "q_data_type": H, "kv_data_type": H}
    wrapper.plan(BATCH.qo_indptr, BATCH.indptr, BATCH.indices, told, 8, kv_heads, 64, 64, page, **options)
    q = BATCH.q if q is None else q
    return wrapper.run(q, (BATCH.k, BATCH.v), torch.full_like(q, 7.0), logits_soft_cap=caps[1])[0]


def with_next_page() -> torch.Tensor:
    """The first request over its two pages and the first of the next request's."""
    pages = torch.cat([BATCH.indices[:3], BATCH.indices[2:]])
    longer = BATCH.but(indptr=i32([0, 3, 6, 7]), indices=pages, kv_lens=(36, 40, 9))
    return dense(BATCH.q[:3], *(tokens_of(longer, cache, 0) for cache in (BATCH.k, BATCH.v)))


def bits_of_q() -> list[int]:
    """q in bfloat16 is read as float16, and the float16 result stands in a tensor of bfloat16."""
    return equal_rows(persistent(q=BATCH.q.bfloat16()).view(H), persistent(q=BATCH.q.bfloat16().view(H)))


PERSISTENT = {
    "lengths in int64": Case(
        "kv_len_not_int32",
        lambda: equal_rows(persistent(i32(KV_LENS).long()), right_rows((20, 0, 9))),
        rows_of([1, 1, 0]),
    ),
    "a length missing": Case(
        "kv_len_wrong_count",
        lambda: equal_rows(
            persistent(i32(KV_LENS[:2])), torch.cat([right_rows()[:8], torch.full((2, 8, 64), 7.0)])
        ),
        [1] * 10,
    ),
    "a length too many": Case(
        "kv_len_wrong_count",
        lambda: persistent(i32([*KV_LENS, 9])),
        (RuntimeError, "qo_indptr[4]0 - qo_indptr[3]10 should be non-negative"),
    ),
    "a negative length": Case(
        "kv_len_negative",
        lambda: persistent(i32([20, -3, 9]))[:, 0, 0].eq(7).int().tolist(),
        rows_of([0, 1, 0]),
    ),
    "longer than its pages": Case(
        "kv_len_beyond_pages",
        lambda: equal_rows(persistent(i32([36, 40, 9])), torch.cat([with_next_page(), right_rows()[3:]])),
        [1] * 10,
    ),
    "another cap at run": Case(
        "soft_cap_differs", lambda: equal_rows(persistent(caps=(2.0, 5.0)), right_rows(cap=5.0)), [1] * 10
    ),
    "no cap at run": Case(
        "soft_cap_differs",
        lambda: persistent(caps=(2.0, 0.0)).isnan().all(dim=2).all(dim=1).tolist(),
        [1] * 10,
    ),
    "no cap in the plan": Case(
        "soft_cap_differs",
        lambda: persistent(caps=(None, 2.0)),
        (ValueError, "logits_soft_cap used in kernel run but not provided in plan()."),
    ),
    "4 heads planned for 2": Case(
        "cache_shape", lambda: equal_rows(persistent(kv_heads=4), right_rows()), [0] * 10
    ),
    "8 a page planned for 16": Case(  # as pages of 8 they don't hold the lengths, which is seen first
        "kv_len_beyond_pages", lambda: equal_rows(persistent(page=8), right_rows()), [*[0] * 8, 1, 0]
    ),
    "q in bfloat16": Case("q_dtype", bits_of_q, [1] * 10),
}


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(H)


Q, K, V = numbers(10, 8, 64, seed=1), numbers(69, 2, 64, seed=2), numbers(69, 2, 64, seed=3)


def ragged(
    path: str, kv: tuple[int, ...] = (0, 20, 60, 69), k: torch.Tensor = K, v: torch.Tensor = V, **options: Any
) -> torch.Tensor:
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(SPACE, backend=path, **options)
    wrapper.plan(cumulated(Q_LENS), i32(kv), 8, 2, 64, causal=True, q_data_type=H)
    return wrapper.run(Q, k, v)


def ragged_rows(
    starts: Sequence[tuple[int, int]] = ((0, 20), (20, 60), (60, 69)), kept: int = 69
) -> torch.Tensor:
    """Requests over these parts of K and V, of which only the first `kept` rows are not zeros."""
    there = (torch.arange(69) < kept)[:, None, None]
    q = Q.split(Q_LENS)
    return torch.cat([dense(q[i], (K * there)[a:b], (V * there)[a:b]) for i, (a, b) in enumerate(starts)])


RAGGED = {
    f"{name}, {path}": Case(code, lambda p=path, c=call: c(p), real[path] if isinstance(real, dict) else real)
    for path in FA
    for name, code, call, real in (
        (
            "from 2",
            "ragged_kv_indptr_start",
            lambda p: equal_rows(ragged(p, (2, 20, 60, 69)), ragged_rows(((2, 20), (20, 60), (60, 69)))),
            [1] * 10,
        ),
        (
            "decreasing",
            "ragged_kv_indptr_decreasing",
            lambda p: ragged(p, (0, 60, 20, 69)),
            {
                "fa2": (RuntimeError, "kv_indptr[2]20 - kv_indptr[1]60 should be non-negative"),
                "fa3": (RuntimeError, "kv_len[1]-40 should be non-negative"),
            },
        ),
        (
            "a slice of k and v",
            "ragged_kv_rows",
            lambda p: equal_rows(ragged(p, k=K[:40], v=V[:40]), ragged_rows(kept=69 if p == "fa2" else 40)),
            [1] * 10,
        ),
        (
            "HND for NHD",
            "ragged_kv_rows",
            lambda p: equal_rows(
                ragged(p, k=K.transpose(0, 1).contiguous(), v=V.transpose(0, 1).contiguous()), ragged_rows()
            ),
            {"fa2": [0] * 10, "fa3": "dies"},
        ),
    )
} | {
    "HND on fa3": Case(
        "hnd_on_fa3",
        lambda: ragged(
            "fa3", k=K.transpose(0, 1).contiguous(), v=V.transpose(0, 1).contiguous(), kv_layout="HND"
        ),
        "dies",
    )
}

BQ, BK, BV = Q[:8], K[:16], V[:16]


def blocks(indptr: list[int], indices: list[int], N: int = 16, **options: Any) -> torch.Tensor:
    """8 rows over N columns in blocks of 4 by 4; behind K and V is no memory."""
    wrapper = flashinfer.BlockSparseAttentionWrapper(SPACE)
    wrapper.plan(i32(indptr), i32(indices), 8, N, 4, 4, 8, 2, 64, **options)
    k = K[:N].clone()
    return wrapper.run(BQ, k, V[: len(k)].clone())


def block_rows(*columns: list[int]) -> torch.Tensor:
    """Each 4 rows over these columns of K and V; beyond the 16 there are lie zeros."""
    k, v = (torch.cat([x, torch.zeros(4, 2, 64, dtype=H)]) for x in (BK, BV))
    return torch.cat([dense(BQ[4 * i :][:4], k[of], v[of], causal=False) for i, of in enumerate(columns)])


def block(number: int) -> list[int]:
    return list(range(4 * number, 4 * number + 4))


def cascade() -> list[int]:
    """A page at both levels counts twice for the request that has it."""
    batch = make_batch((20, 40), (3, 5), seed=1)
    shared = batch.indices[:1]
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(2, SPACE)
    sums, lists = [i32([0, 8]), batch.qo_indptr], [i32([0, 1]), batch.indptr]
    wrapper.plan(sums, lists, [shared, batch.indices], [i32([16]), batch.last], 8, 2, 64, 16, q_data_type=H)
    k, v = (
        [torch.cat([c[int(shared)], tokens_of(batch, c, i)]) for i in range(2)] for c in (batch.k, batch.v)
    )
    q = batch.q.split((3, 5))
    want = torch.cat([dense(q[i], k[i], v[i], causal=False) for i in range(2)])
    return equal_rows(wrapper.run(batch.q, (batch.k, batch.v)), want)


BLOCKS = {
    "a block twice": Case(
        "block_listed_twice",
        lambda: equal_rows(
            blocks([0, 3, 4], [1, 2, 1, 2]), block_rows(block(1) + block(2) + block(1), block(2))
        ),
        [1] * 8,
    ),
    "the block behind the last": Case(
        "block_out_of_range",
        lambda: equal_rows(blocks([0, 1, 2], [1, 4]), block_rows(block(1), block(4))),
        [1] * 8,
    ),
    "a negative block": Case(
        "block_out_of_range",
        lambda: equal_rows(blocks([0, 1, 2], [1, -1]), block_rows(block(1), block(4))),
        [1] * 4 + [0] * 4,
    ),
    "two blocks behind": Case(
        "block_out_of_range", lambda: blocks([0, 1, 2], [1, 5]), (ValueError, "indices out of bound")
    ),
    "an entry too many": Case(
        "block_rows_count",
        lambda: equal_rows(blocks([0, 1, 2, 3], [1, 0, 2]), block_rows(block(1), block(0))),
        [1] * 8,
    ),
    "columns that no blocks fill": Case(
        "block_columns",
        lambda: blocks([0, 1, 2], [1, 2], 18),
        (RuntimeError, "shape '[-1, 4, 2, 64]' is invalid for input of size 2304"),
    ),
    "a mask of narrow blocks": Case(
        "block_mask_shape",
        lambda: equal_rows(
            blocks([0, 1, 2], [1, 2], mask=torch.ones(2, 4, 2, dtype=torch.bool)),
            torch.cat([block_rows(block(1)), torch.zeros(4, 8, 64)]),
        ),
        [1] * 8,
    ),
    "a page at two levels": Case("cascade_page_twice", cascade, [1] * 8),
}


def flash(**changes: Callable[[PagedBatch], Any]) -> torch.Tensor:
    given: dict[str, Any] = {
        "q": BATCH.q,
        "page_table": table_of(BATCH),
        "cache_seqlens": i32(KV_LENS),
        "cu_seqlens_q": BATCH.qo_indptr,
        "max_seqlen_q": 5,
    }
    given |= {name: change(BATCH) for name, change in changes.items()}
    return flash_attn_with_kvcache(k_cache=BATCH.k, v_cache=BATCH.v, causal=True, **given)


def varlen(**changes: Any) -> torch.Tensor:
    given = {"q": Q, "k": K, "v": V, "cu_seqlens_q": cumulated(Q_LENS), "cu_seqlens_k": cumulated(KV_LENS)}
    return flash_attn_varlen_func(
        **{**given, "max_seqlen_q": 5, "max_seqlen_k": 40, "causal": True, **changes}
    )


def columns(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor, every second entry of memory in its last dimension."""
    return torch.stack([tensor, tensor * 0], -1).flatten(-2)[..., ::2]


def flash_rows(*parts: tuple[int, int, int]) -> torch.Tensor:
    """Rows a to b of q over the KV of request i, for each (i, a, b); the last part to write a row wins, others are 0."""
    out = torch.zeros(10, 8, 64, dtype=torch.float64)
    for i, a, b in parts:
        out[a:b] = dense(BATCH.q[a:b], *(tokens_of(BATCH, cache, i) for cache in (BATCH.k, BATCH.v)))
    return out


FLASH = {
    "strided lengths": Case(
        "flash_not_contiguous",
        lambda: flash(cache_seqlens=lambda b: columns(i32(KV_LENS))),
        (RuntimeError, "seqused_k must be contiguous"),
    ),
    "a request missing in cu_seqlens_q": Case(
        "cu_seqlens_q_wrong", lambda: flash(cu_seqlens_q=lambda b: i32([0, 3, 8])), (RuntimeError, BOTH_SUMS)
    ),
    "cu_seqlens_q from 1": Case(
        "cu_seqlens_q_wrong",
        lambda: equal_rows(
            flash(cu_seqlens_q=lambda b: i32([1, 4, 9, 10])), flash_rows((0, 1, 4), (1, 4, 9), (2, 9, 10))
        ),
        [1] * 10,
    ),
    "cu_seqlens_q decreasing": Case(
        "cu_seqlens_q_wrong",
        lambda: equal_rows(
            flash(cu_seqlens_q=lambda b: i32([0, 5, 3, 10])), flash_rows((0, 0, 5), (2, 3, 10))
        ),
        [1] * 10,
    ),
    "max_seqlen_q too small": Case(
        "max_seqlen_q_too_small", lambda: equal_rows(flash(max_seqlen_q=lambda b: 2), right_rows()), [1] * 10
    ),
    "a negative length": Case(
        "cache_seqlens_negative",
        lambda: equal_rows(flash(cache_seqlens=lambda b: i32([-5, 40, 9])), right_rows((0, 40, 9))),
        [1] * 10,
    ),
    "a negative page": Case(
        "page_negative",
        lambda: equal_rows(
            flash(page_table=lambda b: torch.cat([torch.full((3, 1), -1).int(), table_of(b)[:, 1:]], 1)),
            right_rows(),
        ),
        [0] * 10,
    ),
    "max_seqlen_k too small": Case(
        "max_seqlen_k_too_small", lambda: equal_rows(varlen(max_seqlen_k=10), ragged_rows()), [1] * 10
    ),
    "cu_seqlens_k from 2": Case(
        "cu_seqlens_k_wrong",
        lambda: equal_rows(
            varlen(cu_seqlens_k=i32([2, 20, 60, 69])), ragged_rows(((2, 20), (20, 60), (60, 69)))
        ),
        [1] * 10,
    ),
    "cu_seqlens_k decreasing": Case(
        "cu_seqlens_k_wrong",
        lambda: equal_rows(
            varlen(cu_seqlens_k=i32([0, 60, 20, 69])), ragged_rows(((0, 60), (0, 0), (20, 69)))
        ),
        [1] * 10,
    ),
    "cu_seqlens_k beyond k": Case(
        "cu_seqlens_k_wrong",
        lambda: equal_rows(varlen(cu_seqlens_k=i32([0, 20, 60, 90])), ragged_rows()),
        rows_of([1, 1, 0]),
    ),
    "a request missing in cu_seqlens_k": Case(
        "cu_seqlens_k_wrong", lambda: varlen(cu_seqlens_k=i32([0, 20, 60])), (RuntimeError, BOTH_SUMS)
    ),
    "strided k": Case(
        "last_dim_not_contiguous",
        lambda: varlen(k=columns(K)),
        (RuntimeError, "Input tensor must have contiguous last dimension"),
    ),
}

CASES = [
    pytest.param(case, id=f"{of}: {name}")
    for of, table in (("persistent", PERSISTENT), ("ragged", RAGGED), ("blocks", BLOCKS), ("flash", FLASH))
    for name, case in table.items()
]


@pytest.mark.parametrize("case", CASES)
def test_strict_tells_what_was_measured(case: Case) -> None:
    check_strict(case)


@pytest.mark.parametrize("case", CASES)
def test_faithful_acts_it_out(case: Case) -> None:
    check_faithful(case)


ACCEPTED = {
    "a strided q": lambda: equal_rows(flash(q=lambda b: columns(b.q)), right_rows()),
    "a strided page table": lambda: equal_rows(
        flash(page_table=lambda b: columns(table_of(b))), right_rows()
    ),
    "a strided cu_seqlens_q": lambda: equal_rows(
        flash(cu_seqlens_q=lambda b: columns(b.qo_indptr)), right_rows()
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("which", ["strict", "faithful"])
def test_what_the_library_answers_rightly_is_no_mistake(name: str, which: str) -> None:
    with mode.use(which):
        assert all(ACCEPTED[name]())


def test_blocks_come_back_in_the_output_type() -> None:
    got = blocks([0, 1, 2], [1, 2], o_data_type=torch.bfloat16)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.double(), block_rows(block(1), block(2)), atol=1e-2, rtol=1e-2)


def test_missing_rows_that_lie_behind_are_right_by_luck() -> None:
    """Measured with a slice on fa2: the rows that were cut off were read where they still lay."""

    def told(path: str, k: torch.Tensor, v: torch.Tensor) -> str:
        with pytest.raises(KernelError) as caught:
            ragged(path, k=k, v=v)
        assert caught.value.code == "ragged_kv_rows"
        return caught.value.real["en"]

    assert "happens to be right" in told("fa2", K[:40], V[:40])
    assert "returns wrong numbers" in told("fa3", K[:40], V[:40])
    assert "returns wrong numbers" in told("fa2", K[:40].clone(), V[:40])
    with mode.use("faithful"):
        apart = ragged("fa2", k=K[:40], v=V[:40].clone())
    assert equal_rows(apart, ragged_rows()) == [*[1] * 3, *[0] * 7]
