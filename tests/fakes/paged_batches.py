"""Paged batches for the tests of the fakes: a right one, and what each kernel path makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import flashinfer
import torch

DECODE_PATHS = ("dec", "tc")
PREFILL_PATHS = ("fa2", "fa3")
PATHS = DECODE_PATHS + PREFILL_PATHS


def i32(values: Sequence[int]) -> torch.Tensor:
    """int32 tensor of these values."""
    return torch.tensor(list(values), dtype=torch.int32)


def cumulated(lengths: Sequence[int]) -> torch.Tensor:
    """int32 running sum with its leading 0."""
    sums = [0]
    for length in lengths:
        sums.append(sums[-1] + length)
    return i32(sums)


@dataclass(frozen=True)
class PagedBatch:
    """A batch in NHD pages. Every field may be replaced to make it wrong (`but`)."""

    kv_lens: tuple[int, ...]
    q_lens: tuple[int, ...]
    page_size: int
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    qo_indptr: torch.Tensor
    indptr: torch.Tensor
    indices: torch.Tensor
    last: torch.Tensor
    heads: tuple[int, int]
    seq_lens: torch.Tensor | None = None
    plan_options: dict[str, Any] = field(default_factory=dict)

    def but(self, **changes: Any) -> PagedBatch:
        """The same batch with some fields replaced."""
        return replace(self, **changes)


def make_batch(
    kv_lens: Sequence[int],
    q_lens: Sequence[int] | None = None,
    *,
    page_size: int = 16,
    heads: tuple[int, int] = (8, 2),
    head_dim: int = 64,
    dtype: torch.dtype = torch.float16,
    spare_pages: int = 5,
    seed: int = 0,
) -> PagedBatch:
    """Random q and cache; pages of the pool in shuffled order; q_lens None means one token each."""
    generator = torch.Generator().manual_seed(seed)
    q_lens = [1] * len(kv_lens) if q_lens is None else q_lens
    pages = [-(-n // page_size) for n in kv_lens]
    total = sum(pages) + spare_pages
    order = torch.randperm(total, generator=generator)[: sum(pages)].to(torch.int32)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    return PagedBatch(
        kv_lens=tuple(kv_lens),
        q_lens=tuple(q_lens),
        page_size=page_size,
        q=random(sum(q_lens), heads[0], head_dim),
        k=random(total, page_size, heads[1], head_dim),
        v=random(total, page_size, heads[1], head_dim),
        qo_indptr=cumulated(q_lens),
        indptr=cumulated(pages),
        indices=order,
        last=i32([(n - 1) % page_size + 1 if n else 0 for n in kv_lens]),
        heads=heads,
    )


def wrapper_for(path: str, **options: Any) -> Any:
    """A fresh wrapper of the kernel path "dec", "tc", "fa2" or "fa3"."""
    workspace = torch.empty(1 << 16, dtype=torch.uint8)
    if path in DECODE_PATHS:
        return flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            workspace, use_tensor_cores=path == "tc", **options
        )
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, backend=path, **options)


def plan(wrapper: Any, batch: PagedBatch, **options: Any) -> None:
    """Plan `batch` on a wrapper of either kind, causal for prefill."""
    given = {"q_data_type": batch.q.dtype, "seq_lens": batch.seq_lens, **batch.plan_options, **options}
    sizes = (*batch.heads, batch.q.shape[-1], batch.page_size)
    if isinstance(wrapper, flashinfer.BatchDecodeWithPagedKVCacheWrapper):
        wrapper.plan(batch.indptr, batch.indices, batch.last, *sizes, **given)
    else:
        arrays = (batch.qo_indptr, batch.indptr, batch.indices, batch.last)
        wrapper.plan(*arrays, *sizes, **{"causal": True, **given})


def plan_and_run(path: str, batch: PagedBatch, **run_options: Any) -> Any:
    """What a fresh wrapper of `path` returns for `batch`."""
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    return wrapper.run(batch.q, (batch.k, batch.v), **run_options)


def tokens_of(batch: PagedBatch, cache: torch.Tensor, request: int) -> torch.Tensor:
    """K or V of one request, token by token, [kv_len, heads, head_dim]; plain loops on purpose."""
    rows = []
    for j in range(batch.kv_lens[request]):
        page = int(batch.indices[int(batch.indptr[request]) + j // batch.page_size])
        rows.append(cache[page, j % batch.page_size])
    return torch.stack(rows) if rows else cache.new_zeros(0, *cache.shape[2:])


def table_of(batch: PagedBatch, padding: int = 0) -> torch.Tensor:
    """FlashAttention's page table for a batch; beyond a row's pages stands `padding`."""
    pages = (batch.indptr[1:] - batch.indptr[:-1]).tolist()
    table = torch.full((len(pages), max(1, *pages)), padding, dtype=torch.int32)
    for i, count in enumerate(pages):
        first = int(batch.indptr[i])
        table[i, :count] = batch.indices[first : first + count]
    return table


def dense_float64(
    batch: PagedBatch,
    *,
    causal: bool,
    window: tuple[int, int] = (-1, -1),
    soft_cap: float = 0.0,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of the batch from its definition, one row and head at a time, in float64.

    Returns out [rows, heads, head_dim] and the natural LSE [rows, heads]; blind rows are 0 and -inf.
    """
    heads, kv_heads = batch.heads
    scale = batch.q.shape[-1] ** -0.5 if scale is None else scale
    out = torch.zeros(batch.q.shape, dtype=torch.float64)
    lse = torch.full(batch.q.shape[:2], -torch.inf, dtype=torch.float64)
    row = 0
    for request, (n, kv_len) in enumerate(zip(batch.q_lens, batch.kv_lens, strict=True)):
        k = tokens_of(batch, batch.k, request).double()
        v = tokens_of(batch, batch.v, request).double()
        for j in range(n):
            own = kv_len - n + j
            seen = [
                t
                for t in range(kv_len)
                if (not causal or t <= own)
                and (window[0] < 0 or t >= own - window[0])
                and (window[1] < 0 or t <= own + window[1])
            ]
            for head in range(heads if seen else 0):
                scores = (k[seen, head // (heads // kv_heads)] @ batch.q[row, head].double()) * scale
                if soft_cap > 0:
                    scores = soft_cap * torch.tanh(scores / soft_cap)
                lse[row, head] = torch.logsumexp(scores, 0)
                out[row, head] = torch.softmax(scores, 0) @ v[seen, head // (heads // kv_heads)]
            row += 1
    return out, lse
