"""What can be wrong with heads, positions and caches of rotary embedding: the findings, causes first."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fake_kernels import mistakes_rope as m
from fake_kernels import mistakes_rows as mr
from fake_kernels.checks_paged import first_decrease
from fake_kernels.checks_rows import last_dim, tensor_of
from fake_kernels.findings import Finding
from fake_kernels.memory import beyond
from fake_kernels.outcomes import GARBAGE, HARMLESS, UNMEASURED, raises, verbatim
from fake_kernels.rope import lane


def check_heads(q: torch.Tensor, k: torch.Tensor, names: tuple[str, str] = ("q", "k")) -> Iterator[Finding]:
    """Whether q and k are [tokens, heads, head_dim] of one type, with as many tokens, last dimension dense."""
    for name, given, real in zip(names, (q, k), ("q", "k"), strict=True):
        yield from tensor_of(name, given, 3, checked=True, floats=True)
        yield from last_dim(name, given, real)
    if k.shape[0] != q.shape[0] or k.shape[2] != q.shape[2]:
        dim = 0 if k.shape[0] != q.shape[0] else 2
        told = raises(
            RuntimeError, f"q.size({dim}) == k.size({dim}) ({q.shape[dim]} vs. {k.shape[dim]})", "run"
        )
        expected = [q.shape[0], k.shape[1], q.shape[2]]
        yield Finding(mr.SHAPES_DIFFER, names[1], {"got": list(k.shape), "expected": expected}, told)
    if k.dtype != q.dtype:
        halves = k.element_size() == q.element_size() == 2
        params = {"got": str(k.dtype), "expected": str(q.dtype)}
        yield Finding(mr.DTYPES_DIFFER, names[1], params, GARBAGE if halves else UNMEASURED)


def check_rotary_dim(
    rotary_dim: int, head_dim: int, interleave: bool, *, of_cache: bool = False
) -> Iterator[Finding]:
    """Whether these dimensions pair up, and a thread's vector holds whole pairs or whole halves.

    Head dimensions that no kernel is built for (the fakes take any) have no vectors. of_cache: angles come from a cache.
    """
    vector = lane(head_dim)
    params: dict[str, object] = {"value": rotary_dim, "head_dim": head_dim, "vector": vector}
    if rotary_dim == 0 and not of_cache:
        return  # nothing turns
    if rotary_dim < 2 or rotary_dim % 2 or rotary_dim > head_dim:
        known = vector is not None and rotary_dim > 1 and not interleave and not of_cache
        wrong = m.ROTARY_DIM
        if known and vector is not None and (rotary_dim // 2) % vector:
            wrong, params = m.ROTARY_DIM_UNALIGNED, params | {"unit": 2 * vector}
        outcome = GARBAGE if known and wrong is m.ROTARY_DIM else None
        yield Finding(wrong, "rotary_dim", params, outcome)
    elif vector is not None:
        unit = vector if interleave else 2 * vector
        if rotary_dim % unit:
            wrong = m.ROTARY_DIM_SPILLS if interleave else m.ROTARY_DIM_UNALIGNED
            outcome = UNMEASURED if interleave and of_cache else None
            yield Finding(wrong, "rotary_dim", params | {"unit": unit}, outcome)


def check_positions(
    name: str, positions: torch.Tensor, rows: int, in_cache: int | None = None, row_bytes: int = 0
) -> Iterator[Finding]:
    """Whether there is a position for each row, none negative, each below `in_cache` if given, the rows of a cache with
    `row_bytes` each."""
    yield from tensor_of(name, positions, 1)
    if rows == 0:
        yield Finding(mr.NO_ROWS, name)
    if positions.dtype not in (torch.int32, torch.int64):
        yield Finding(m.POSITION_TYPE, name, {"dtype": str(positions.dtype)})
    if len(positions) != rows:
        outcome = GARBAGE if len(positions) < rows and in_cache is None else UNMEASURED
        yield Finding(m.POSITION_COUNT, name, {"got": len(positions), "expected": rows}, outcome)
    if not positions.is_contiguous():
        told = raises(RuntimeError, "pos_ids must be contiguous", "run")  # the C++ name, also of `positions`
        yield Finding(mr.NOT_CONTIGUOUS, name, {"stride": list(positions.stride())}, told)
    negative = (positions < 0).nonzero().flatten().tolist()
    for row in negative[:1]:
        outcome = HARMLESS if in_cache is None else UNMEASURED
        yield Finding(m.POSITION_NEGATIVE, name, {"position": row, "value": int(positions[row])}, outcome)
    if in_cache is not None:
        outside = (positions >= in_cache).nonzero().flatten().tolist()
        for row in outside[:1]:
            params = {"position": row, "value": int(positions[row]), "rows": in_cache}
            farthest = (int(positions.max()) - in_cache) * row_bytes
            yield Finding(m.POSITION_OUT_OF_CACHE, name, params, beyond(farthest))


def check_ragged(indptr: torch.Tensor, offsets: torch.Tensor, rows: int) -> Iterator[Finding]:
    """Whether indptr [batch + 1] divides the rows of q among the requests of offsets [batch]."""
    for name, given in (("indptr", indptr), ("offsets", offsets)):
        yield from tensor_of(name, given, 1, checked=True)
        if given.dtype not in (torch.int32, torch.int64):
            yield Finding(m.POSITION_TYPE, name, {"dtype": str(given.dtype)})
        if not given.is_contiguous():
            yield Finding(mr.NOT_CONTIGUOUS, name, {"stride": list(given.stride())})
    if offsets.dtype != indptr.dtype:
        yield Finding(m.INDPTR_TYPES, "offsets", {"got": str(offsets.dtype), "expected": str(indptr.dtype)})
    entries, batch = indptr.tolist(), len(offsets)
    if len(entries) != batch + 1:
        params = {"got": len(entries), "expected": batch + 1, "batch": batch}
        yield Finding(m.INDPTR_COUNT, "indptr", params)
    decrease = first_decrease(entries)
    for wrong, at in (
        (entries[0] != 0, 0),
        (decrease is not None, decrease["next"] if decrease else 0),
        (entries[-1] != rows, len(entries) - 1),
    ):
        if wrong:
            params = {"position": at, "value": entries[at], "rows": rows}
            short = decrease is None and entries[0] == 0 and entries[-1] < rows
            yield Finding(m.INDPTR_WRONG, "indptr", params, GARBAGE if short else UNMEASURED)
    negative = (offsets < 0).nonzero().flatten().tolist()
    for row in negative[:1]:
        yield Finding(m.POSITION_NEGATIVE, "offsets", {"position": row, "value": int(offsets[row])})


def check_cache(cache: torch.Tensor, head_dim: int) -> Iterator[Finding]:
    """Whether a cos/sin cache is float32 [positions, rotary_dim], cos in front."""
    if isinstance(cache, torch.Tensor) and cache.dtype != torch.float32:
        yield Finding(m.CACHE_TYPE, "cos_sin_cache", {"got": str(cache.dtype)})
    yield from tensor_of("cos_sin_cache", cache, 2, checked=True)
    if not cache.is_contiguous():
        yield Finding(mr.NOT_CONTIGUOUS, "cos_sin_cache", {"stride": list(cache.stride())})
    if cache.shape[1] > head_dim:
        params = {"rotary": cache.shape[1], "head_dim": head_dim}
        yield Finding(m.CACHE_TOO_WIDE, "cos_sin_cache", params)


def check_head_size(name: str, given: torch.Tensor, head_dim: int) -> Iterator[Finding]:
    """Whether [tokens, heads * head_size] can be seen as [tokens, heads, head_size]."""
    yield from tensor_of(name, given)
    try:
        given.view(given.shape[0], -1, head_dim)
    except RuntimeError as failure:
        told = raises(RuntimeError, verbatim(str(failure)), "run")
        yield Finding(m.HEAD_SIZE, name, {"value": given.shape[-1], "head_dim": head_dim}, told)
