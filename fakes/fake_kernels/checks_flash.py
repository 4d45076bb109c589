"""What can be wrong with the arguments of flash_attn_with_kvcache: the findings, causes first.

Entries of the page table beyond a request's length are padding and never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from fake_kernels import mistakes_flash as m
from fake_kernels.checks_masks import check_sink_shape
from fake_kernels.checks_values import check_numbers, check_tensors
from fake_kernels.findings import Finding, Mistake
from fake_kernels.mistakes_indptr import NOT_A_TENSOR, NOT_A_VECTOR
from fake_kernels.mistakes_values import NOT_A_PAIR
from fake_kernels.outcomes import GARBAGE, HARMLESS, UNMEASURED, Outcome, raises

_OTHER_BATCH = "batch_size must be equal to batch_size_k"
_NEAR_ROWS = 1 << 14
"""How far beyond its rows a running sum may reach and be acted out; measured were 21 rows."""

BATCH_SIZES = raises(RuntimeError, _OTHER_BATCH, "run")
"""Running sums of another number of requests than the page table has rows, or the other running sum entries."""

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True)
class FlashCall:
    """One call, as the caller made it.

    q [total, heads, head_dim] with cu_seqlens_q int32 [B+1], else [B, rows, heads, head_dim].
    k_cache / v_cache [pages, page_size, kv_heads, head_dim] with page_table int32 [B, width], else
    [B, longest, kv_heads, head_dim]. cache_seqlens int32 [B], new tokens included.
    """

    q: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    page_table: torch.Tensor | None
    cache_seqlens: torch.Tensor
    cu_seqlens_q: torch.Tensor | None
    cu_seqlens_k_new: torch.Tensor | None
    max_seqlen_q: int | None

    @property
    def batch(self) -> int:
        """Requests, counted as the kernel does: by cu_seqlens_q, or q's first dimension."""
        return self.q.shape[0] if self.cu_seqlens_q is None else len(self.cu_seqlens_q) - 1

    @property
    def page_size(self) -> int:
        """Tokens a page holds (the whole row of the cache without a page table)."""
        return self.k_cache.shape[1]


def check_arrays(required: bool = False, **arrays: object) -> Iterator[Finding]:
    """Whether the index arrays are tensors, and the vectors among them one-dimensional; the other checks
    rely on it. None is a missing array, unless they are required."""
    for name, given in arrays.items():
        if given is None and not required:
            continue
        if not isinstance(given, torch.Tensor):
            yield Finding(NOT_A_TENSOR, name, {"type": type(given).__name__})
        elif name.startswith("cu_seqlens") and given.ndim != 1:
            yield Finding(NOT_A_VECTOR, name, {"shape": list(given.shape)})


def check_call(call: FlashCall) -> Iterator[Finding]:
    """Everything wrong with a call, most telling first. Nothing for a right one."""
    yield from _check_types(call)
    yield from _check_shapes(call)
    yield from _check_q_split(call)
    yield from _check_index_shapes(call)
    yield from _check_longest_q(call)
    yield from _check_lengths(call)
    yield from _check_page_table(call)


def _check_types(call: FlashCall) -> Iterator[Finding]:
    ints = (
        ("page_table", call.page_table, "page_table", "torch.int32"),
        ("cache_seqlens", call.cache_seqlens, "seqused_k", "int32"),
        ("cu_seqlens_q", call.cu_seqlens_q, "cu_seqlens_q", "torch.int32"),
    )
    for name, tensor, real_name, real_dtype in ints:
        if tensor is None:
            continue
        if tensor.dtype != torch.int32:
            dtype = str(tensor.dtype).removeprefix("torch.")
            params = {"dtype": dtype, "real_name": real_name, "real_dtype": real_dtype}
            yield Finding(m.NOT_INT32, name, params)
        copied = name != "cache_seqlens"  # by the library's own Python, which leaves this one out
        if not copied and tensor.numel() > 1 and tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
            yield Finding(m.NOT_CONTIGUOUS, name, {"stride": list(tensor.stride())})
    if call.q.dtype not in _DTYPES:
        yield Finding(m.DTYPE, "q", {"value": str(call.q.dtype)})
    for name, cache in (("k_cache", call.k_cache), ("v_cache", call.v_cache)):
        if cache.dtype != call.q.dtype:
            yield Finding(m.DTYPES_DIFFER, name, {"value": str(call.q.dtype), "other": str(cache.dtype)})
        if cache.shape[-1] > 1 and cache.stride(-1) != 1:
            yield Finding(m.LAST_DIM_STRIDE, name, {"value": cache.stride(-1)})


def check_flash_values(
    numbers: Mapping[str, object], window_size: object, **tensors: object
) -> Iterator[Finding]:
    """Whether numbers are numbers, the window two of them, and tensors tensors; what follows relies on it."""
    yield from check_numbers(numbers)
    pair = window_size if isinstance(window_size, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(side, int) for side in pair):
        params = {"value": repr(window_size), "type": type(window_size).__name__}
        yield Finding(NOT_A_PAIR, "window_size", params)
    yield from check_tensors("stride", **tensors)


def _check_shapes(call: FlashCall) -> Iterator[Finding]:
    dims = 4 if call.cu_seqlens_q is None else 3
    if call.q.ndim != dims:
        yield Finding(m.SHAPE, "q", {"got": list(call.q.shape), "expected": f"{dims}-D"})
    if call.k_cache.ndim != 4:
        yield Finding(m.SHAPE, "k_cache", {"got": list(call.k_cache.shape), "expected": "4-D"})
    if call.v_cache.shape != call.k_cache.shape:
        expected = str(list(call.k_cache.shape))
        yield Finding(m.SHAPE, "v_cache", {"got": list(call.v_cache.shape), "expected": expected})
    heads, kv_heads = call.q.shape[-2], call.k_cache.shape[2]
    if kv_heads < 1 or heads % kv_heads:
        yield Finding(m.HEADS, "q", {"value": heads, "kv": kv_heads})
    if call.q.shape[-1] != call.k_cache.shape[3]:
        expected = f"head_dim {call.q.shape[-1]}"
        yield Finding(
            m.SHAPE, "k_cache", {"got": list(call.k_cache.shape), "expected": expected}, _wrong_k_shape()
        )


def _wrong_k_shape() -> Outcome:
    message = "k must have shape (num_pages, page_size, num_heads_k, head_size)"
    return raises(RuntimeError, message, "run")


def check_sinks(q: torch.Tensor, sinks: torch.Tensor | None) -> Iterator[Finding]:
    """Whether there is one sink a head of q, in a type that the kernel takes."""
    if sinks is None:
        return
    types = (torch.bfloat16, torch.float32) if q.dtype == torch.float32 else (torch.bfloat16,)
    yield from check_sink_shape("sinks", sinks, q.shape[-2], types)


def check_sums(
    name: str,
    sums: torch.Tensor,
    end: int,
    mistake: Mistake,
    *,
    noticed: Outcome | None,
    reads_on: bool = False,
) -> Iterator[Finding]:
    """Whether a running sum of tokens starts at 0, never decreases and ends at `end`, the rows it divides.

    noticed: the library's error where it has the entries of another number of requests. reads_on: it may end beyond the
    rows, which are read past their end then.
    """
    entries = sums.tolist()
    room = end + _NEAR_ROWS if reads_on else end
    inside = GARBAGE if entries and min(entries) >= 0 and max(entries) <= room else UNMEASURED
    for problem, problem_zh, wrong, outcome in (
        ("it needs at least two entries", "至少要有两项", len(entries) < 2, UNMEASURED),
        ("it must start at 0", "必须从 0 开始", bool(entries) and entries[0] != 0, inside),
        ("it must not decrease", "不能变小", any(b < a for a, b in pairwise(entries)), inside),
        (
            f"it must end at {end}",
            f"最后一项必须是 {end}",
            bool(entries) and entries[-1] != end,
            inside if entries and entries[-1] > end else UNMEASURED,
        ),
    ):
        if wrong:
            params = {"entries": str(entries[:9]), "problem": problem, "problem_zh": problem_zh}
            yield Finding(mistake, name, params, noticed if noticed and len(entries) > 1 else outcome)
            return


def _check_q_split(call: FlashCall) -> Iterator[Finding]:
    if call.cu_seqlens_q is None:
        return
    if call.max_seqlen_q is None:
        yield Finding(m.MAX_SEQLEN_Q_MISSING, "max_seqlen_q")
        return
    caches = call.k_cache if call.page_table is None else call.page_table
    noticed = None
    if list(caches.shape[:1]) != [call.batch]:
        noticed = BATCH_SIZES
    elif tuple(call.cache_seqlens.shape) != (call.batch,):
        noticed = m.CACHE_SEQLENS_SHAPE.outcome("sgl")
    sums, end = call.cu_seqlens_q, call.q.shape[0]
    yield from check_sums("cu_seqlens_q", sums, end, m.CU_SEQLENS_Q_SHAPE, noticed=noticed)


def _check_longest_q(call: FlashCall) -> Iterator[Finding]:
    if call.cu_seqlens_q is None or call.max_seqlen_q is None:
        return
    rows = [b - a for a, b in pairwise(call.cu_seqlens_q.tolist())]
    group = call.q.shape[-2] // max(1, call.k_cache.shape[2])
    yield from check_longest_q(rows, call.max_seqlen_q, group)


def check_longest_q(rows: Sequence[int], max_seqlen_q: int, group: int) -> Iterator[Finding]:
    """Whether max_seqlen_q is enough for requests of so many rows."""
    needed = max(rows)
    if needed > max_seqlen_q:
        params = {"value": max_seqlen_q, "request": rows.index(needed), "needed": needed}
        within = needed <= m.reached(max_seqlen_q, max(1, group))
        yield Finding(m.MAX_SEQLEN_Q_TOO_SMALL, "max_seqlen_q", params, HARMLESS if within else None)


def _check_index_shapes(call: FlashCall) -> Iterator[Finding]:
    """Whether every request has one length and one row of pages (or of the cache)."""
    if call.cache_seqlens.ndim != 1 or len(call.cache_seqlens) != call.batch:
        yield Finding(
            m.CACHE_SEQLENS_SHAPE,
            "cache_seqlens",
            {"got": list(call.cache_seqlens.shape), "expected": call.batch},
        )
    table = call.page_table
    if table is None:
        if call.k_cache.shape[0] != call.batch:
            params = {"got": call.k_cache.shape[0], "expected": call.batch}
            yield Finding(m.NO_PAGE_TABLE, "page_table", params)
    elif table.ndim != 2 or table.shape[0] != call.batch:
        shape = "page_table must have shape (batch_size_k, max_num_pages_per_seq)"
        message = _OTHER_BATCH if table.ndim == 2 else shape
        params = {"got": list(table.shape), "expected": call.batch, "message": message}
        yield Finding(m.PAGE_TABLE_SHAPE, "page_table", params)


def _check_lengths(call: FlashCall) -> Iterator[Finding]:
    lengths = call.cache_seqlens.tolist()
    for i, length in enumerate(lengths):
        if length < 0:
            yield Finding(m.CACHE_SEQLENS_NEGATIVE, "cache_seqlens", {"position": i, "value": length})
    if call.cu_seqlens_k_new is not None and call.cu_seqlens_k_new.numel() == call.batch + 1:
        sums = call.cu_seqlens_k_new.tolist()
        for i, length in enumerate(lengths):
            should = sums[i + 1] - sums[i]
            if should != length:
                params = {"position": i, "value": length, "should": should}
                yield Finding(m.CU_SEQLENS_K_DIFFERS, "cache_seqlens", params)
                return


def _check_page_table(call: FlashCall) -> Iterator[Finding]:
    lengths = call.cache_seqlens.tolist()
    if call.page_table is not None:
        yield from _check_pages(call, call.page_table, lengths)
        return
    room = call.page_size
    for i, length in enumerate(lengths):
        if length > room:
            yield Finding(
                m.PAGE_TABLE_NARROW,
                "cache_seqlens",
                {"request": i, "value": length, "room": room, "width": 1, "page_size": room},
            )
            return


def _check_pages(call: FlashCall, table: torch.Tensor, lengths: list[int]) -> Iterator[Finding]:
    size, pages, width = call.page_size, call.k_cache.shape[0], table.shape[1]
    for i, length in enumerate(lengths):
        if length > width * size:
            yield Finding(
                m.PAGE_TABLE_NARROW,
                "page_table",
                {"request": i, "value": length, "room": width * size, "width": width, "page_size": size},
            )
    counts = torch.tensor([-(-max(length, 0) // size) for length in lengths]).unsqueeze(1)
    used = torch.arange(width).unsqueeze(0) < counts
    outside = (used & (table >= pages)).nonzero()
    if outside.numel():
        row, column = outside[0].tolist()
        params = {"row": row, "value": int(table[row, column]), "pages": pages, "last": pages - 1}
        numbers = table[used]
        positions = size > 1 and _read_as_positions(table, used, size)
        if positions and int(numbers.max()) < pages * size:
            yield Finding(m.TOKEN_POSITIONS, "page_table", params | {"page_size": size})
        else:
            yield Finding(m.PAGE_OUT_OF_RANGE, "page_table", params)
    negative = (used & (table < 0)).nonzero()
    if negative.numel():
        row, column = negative[0].tolist()
        yield Finding(m.PAGE_NEGATIVE, "page_table", {"row": row, "value": int(table[row, column])})


def _read_as_positions(table: torch.Tensor, used: torch.Tensor, size: int) -> bool:
    """Whether the entries look like places of tokens: page starts, or runs of consecutive numbers."""
    if bool((table[used] % size == 0).all()):
        return True
    pairs = used[:, 1:] & used[:, :-1]
    steps = (table[:, 1:] - table[:, :-1])[pairs]
    return steps.numel() > 0 and bool((steps == 1).float().mean() >= 0.5)
