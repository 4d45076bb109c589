"""What can be wrong with new tokens on their way into a paged cache: the findings, causes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from fake_kernels import mistakes_indptr as mi
from fake_kernels import mistakes_page as m
from fake_kernels import mistakes_paged as mp
from fake_kernels import mistakes_rows as mr
from fake_kernels.checks_paged import first_decrease
from fake_kernels.checks_rows import last_dim, tensor_of
from fake_kernels.checks_values import check_room
from fake_kernels.findings import Finding
from fake_kernels.memory import ALLOCATOR_BLOCK, beyond, picked
from fake_kernels.outcomes import GARBAGE, HARMLESS, UNMEASURED, raises
from fake_kernels.paged import host_lengths


@dataclass(frozen=True)
class Append:
    """One append, index arrays already integers.

    key, value: [nnz, kv_heads, head_dim]. batch_indices, positions: [nnz]. k_cache, v_cache: 4-D, by token:
    [pages, page_size, kv_heads, head_dim] whatever the caller's layout. indices [>= indptr[-1]], indptr
    [B + 1] and last_page_len [B] describe the cache after the append.
    """

    key: torch.Tensor
    value: torch.Tensor
    batch_indices: torch.Tensor
    positions: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    indices: torch.Tensor
    indptr: torch.Tensor
    last_page_len: torch.Tensor

    @property
    def page_size(self) -> int:
        return self.k_cache.shape[1]

    @cached_property
    def places(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Where each row goes: index into `indices`, page and entry in that page, int64 [nnz] each
        (page.cuh, AppendPagedKVCacheKernel)."""
        starts = _entries(self.indptr, self.batch_indices.long()) * self.page_size
        place = starts + self.positions.long()
        at = torch.div(place, self.page_size, rounding_mode="floor")
        return at, _entries(self.indices, at), place % self.page_size

    def write(self) -> None:
        """What the kernel does: rows whose page lies behind the cache are lost, behind the page table it sees page 0."""
        _, pages, entries = self.places
        inside = (pages >= 0) & (pages < self.k_cache.shape[0])
        everything = bool(inside.all())
        for cache, rows in ((self.k_cache, self.key), (self.v_cache, self.value)):
            told = rows if rows.dtype == cache.dtype else rows.view(cache.dtype)
            if everything:  # picking them all would take as long as writing them
                cache[pages, entries] = told
            else:
                cache[pages[inside], entries[inside]] = told[inside]


def _entries(table: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """table[at], int64, with zeros behind the table."""
    return picked(table, at.clamp(min=0)).long()


def check_integers(**vectors: torch.Tensor) -> Iterator[Finding]:
    """Whether the arrays are one-dimensional tensors of integers, each contiguous."""
    for name, given in vectors.items():
        if not isinstance(given, torch.Tensor):
            kind = type(given).__name__
            message = f"'{kind}' object has no attribute 'int'"
            yield Finding(mi.NOT_A_TENSOR, name, {"type": kind}, raises(AttributeError, message, "run"))
        elif given.ndim != 1:
            told = raises(RuntimeError, f"{name} must be a 1D tensor", "run")
            yield Finding(mi.NOT_A_VECTOR, name, {"shape": list(given.shape)}, told)
        elif given.is_floating_point():
            whole = bool((given == given.trunc()).all())
            dtype = {"dtype": str(given.dtype)}
            yield Finding(m.NOT_INTEGERS, name, dtype, HARMLESS if whole else None)
        elif given.is_complex() or given.dtype == torch.bool:
            yield Finding(m.NOT_INTEGERS, name, {"dtype": str(given.dtype)}, UNMEASURED)
        elif given.dtype == torch.int32 and not given.is_contiguous():
            yield Finding(mr.NOT_CONTIGUOUS, name, {"stride": list(given.stride())})


def check_int32(**vectors: torch.Tensor) -> Iterator[Finding]:
    """Whether int32 holds these numbers, vectors of integers."""
    for name, given in vectors.items():
        if given.itemsize > 4 and not torch.equal(given.int(), given):
            yield Finding(m.BEYOND_INT32, name, {"value": int(given[given != given.int()][0])})


def check_append(call: Append) -> Iterator[Finding]:
    """Everything wrong with an append whose arrays passed `check_integers`. Nothing for a right one."""
    yield from _check_tensors(call)
    yield from _check_counts(call)
    yield from _check_table(call)
    yield from _check_rows(call)
    yield from _check_targets(call)


def _check_tensors(call: Append) -> Iterator[Finding]:
    for name, given in (("append_key", call.key), ("append_value", call.value)):
        yield from tensor_of(name, given, 3, checked=True)
    if call.key.shape[0] == 0:
        yield Finding(mr.NO_ROWS, "append_key")
    expected = [call.key.shape[0], *call.k_cache.shape[2:]]
    for name, given in (("append_key", call.key), ("append_value", call.value)):
        if list(given.shape) != expected:
            params: dict[str, object] = {"got": list(given.shape), "expected": expected}
            params |= {"heads": given.shape[1], "kv_heads": expected[1]}
            yield Finding(m.KEY_SHAPE, name, params, UNMEASURED if given.shape[1] == expected[1] else None)
        if given.dtype != call.k_cache.dtype:
            params = {"got": str(given.dtype), "expected": str(call.k_cache.dtype)}
            halves = given.element_size() == call.k_cache.element_size() == 2
            yield Finding(m.KEY_BITS, name, params, None if halves else UNMEASURED)
        yield from last_dim(name, given)
    k, v = call.k_cache, call.v_cache
    if k.shape != v.shape:
        yield Finding(mr.SHAPES_DIFFER, "paged_kv_cache", {"got": list(v.shape), "expected": list(k.shape)})
    if k.dtype != v.dtype:
        yield Finding(mr.DTYPES_DIFFER, "paged_kv_cache", {"got": str(v.dtype), "expected": str(k.dtype)})
    yield from check_room(paged_kv_cache=k)
    if k.stride() != v.stride():
        yield Finding(m.STRIDES_DIFFER, "paged_kv_cache", {"k": list(k.stride()), "v": list(v.stride())})


def _check_counts(call: Append) -> Iterator[Finding]:
    rows, batch = call.key.shape[0], len(call.last_page_len)
    for name, given in (("batch_indices", call.batch_indices), ("positions", call.positions)):
        if len(given) != rows:
            yield Finding(m.ROWS_DIFFER, name, {"got": len(given), "expected": rows})
    if len(call.indptr) != batch + 1:
        params = {"got": len(call.indptr), "expected": batch + 1, "batch": batch}
        yield Finding(m.INDPTR_COUNT, "kv_indptr", params)


def _check_table(call: Append) -> Iterator[Finding]:
    entries = call.indptr.tolist()
    yield from check_pages_of(entries, call.last_page_len.tolist(), call.page_size)
    if len(call.indices) < entries[-1]:
        params = {"got": len(call.indices), "expected": entries[-1], "indptr": "kv_indptr"}
        yield Finding(mp.INDICES_TOO_SHORT, "kv_indices", params)


def _check_rows(call: Append) -> Iterator[Finding]:
    """Whether each row's request exists and its position lies within that request."""
    indptr, batch, size = call.indptr.tolist(), len(call.last_page_len), call.page_size
    lengths = host_lengths(indptr, call.last_page_len.tolist(), size)
    for row, (request, position) in enumerate(
        zip(call.batch_indices.tolist(), call.positions.tolist(), strict=True)
    ):
        if not 0 <= request < batch:
            wrong = m.BATCH_INDEX_UNFILLED if request == -1 else m.BATCH_INDEX_OUT_OF_RANGE
            params = {"position": row, "value": request, "batch": batch, "last": batch - 1}
            near = batch <= request < ALLOCATOR_BLOCK // call.indptr.element_size()
            outcome = (GARBAGE if near else UNMEASURED) if request != -1 else None
            yield Finding(wrong, "batch_indices", params, outcome)
            continue
        pages = indptr[request + 1] - indptr[request]
        if 0 <= position < min(pages * size, lengths[request]):
            continue
        place = {"position": row, "value": position, "request": request, "pages": pages}
        place |= {"page_size": size, "length": lengths[request]}
        if position < 0:
            inside = indptr[request] * size + position >= 0
            yield Finding(m.POSITION_NEGATIVE, "positions", place, GARBAGE if inside else UNMEASURED)
        elif position >= pages * size:
            yield Finding(m.POSITION_BEYOND_PAGES, "positions", place)
        else:
            yield Finding(m.POSITION_BEYOND_LENGTH, "positions", place)


def _check_targets(call: Append) -> Iterator[Finding]:
    """Whether the pages written to exist, and no place is written twice. Rows are right by now."""
    at, pages, entries = call.places
    count = call.k_cache.shape[0]
    wrong = ((pages < 0) | (pages >= count)).nonzero().flatten().tolist()
    page_bytes = call.k_cache.stride(0) * call.k_cache.element_size()
    for row in wrong[:1]:
        place = {"position": int(at[row]), "value": int(pages[row]), "row": row}
        outcome = beyond((int(pages.max()) - count) * page_bytes) if int(pages.min()) >= 0 else UNMEASURED
        yield Finding(m.PAGE_MISSING, "kv_indices", place | {"pages": count, "last": count - 1}, outcome)
    seen: dict[tuple[int, int], int] = {}
    for row, place_of in enumerate(zip(pages.tolist(), entries.tolist(), strict=True)):
        first = seen.setdefault(place_of, row)
        if first != row:
            params = {"first": first, "position": row, "page": place_of[0], "entry": place_of[1]}
            yield Finding(m.WRITTEN_TWICE, "positions", params)
            return


def check_append_indptr(append_indptr: torch.Tensor, seq_lens: torch.Tensor, nnz: int) -> Iterator[Finding]:
    """What can be wrong with the inputs of get_batch_indices_positions."""
    entries = append_indptr.tolist()
    decrease = first_decrease(entries)
    if not entries or entries[0] != 0:
        params = {"position": 0, "value": entries[0] if entries else "missing"}
        yield Finding(m.APPEND_INDPTR, "append_indptr", params)
    if decrease is not None:
        place = {"position": decrease["next"], "value": decrease["after"]}
        yield Finding(m.APPEND_INDPTR, "append_indptr", place)
    if len(seq_lens) != len(entries) - 1:
        outcome = GARBAGE if len(seq_lens) < len(entries) - 1 else UNMEASURED
        sizes = {"got": len(seq_lens), "expected": len(entries) - 1}
        yield Finding(m.SEQ_LENS_COUNT, "seq_lens", sizes, outcome)
        return
    for i, length in enumerate(seq_lens.tolist()):
        appended = entries[i + 1] - entries[i]
        if length < appended:
            place = {"position": i, "value": length, "appended": appended}
            yield Finding(m.SEQ_LENS_TOO_SHORT, "seq_lens", place)
    if nnz < entries[-1]:
        yield Finding(m.NNZ_TOO_SMALL, "nnz", {"value": nnz, "needed": entries[-1]})


def check_output(name: str, given: torch.Tensor, nnz: int) -> Iterator[Finding]:
    """Whether an output that the caller allocated is int32 [nnz] (utils.py, check_shape_dtype_device)."""
    yield from tensor_of(name, given)
    if list(given.shape) != [nnz]:
        params = {"property": "shape", "property_zh": "形状", "got": given.shape, "expected": (nnz,)}
        yield Finding(m.OUTPUT_MISMATCH, name, params)
    if given.dtype != torch.int32:
        params = {"property": "dtype", "property_zh": "类型", "got": given.dtype, "expected": torch.int32}
        yield Finding(m.OUTPUT_MISMATCH, name, params)


def check_lengths(indptr: Sequence[int], last_page_len: Sequence[int], page_size: int) -> Iterator[Finding]:
    """What makes get_seq_lens give other lengths than the attention kernels use."""
    if len(indptr) != len(last_page_len) + 1:
        batch = len(last_page_len)
        params = {"got": len(indptr), "expected": batch + 1, "batch": batch}
        yield Finding(m.INDPTR_COUNT, "kv_indptr", params)
        return
    if page_size < 1:
        yield Finding(mp.PAGE_SIZE_INVALID, "page_size", {"value": page_size})
    yield from check_pages_of(indptr, last_page_len, page_size)
    for i, last in enumerate(last_page_len):
        if indptr[i + 1] == indptr[i] and last != 0:
            yield Finding(m.EMPTY_REQUEST_LENGTH, "kv_last_page_len", {"position": i, "value": last})


def check_pages_of(entries: Sequence[int], last_page_len: Sequence[int], page_size: int) -> Iterator[Finding]:
    """Whether indptr rises from 0 and every last page holds 1 to page_size tokens (of a request without pages: 0
    or more)."""
    if entries[0] != 0:
        yield Finding(mi.KV_INDPTR_NOT_FROM_ZERO, "kv_indptr", {"position": 0, "value": entries[0]})
    decrease = first_decrease(list(entries))
    if decrease is not None:
        at = {"position": decrease["next"], "value": decrease["after"]}
        yield Finding(mi.KV_INDPTR_DECREASING, "kv_indptr", decrease | at)
    for i, last in enumerate(last_page_len):
        pages = entries[i + 1] - entries[i]
        place = {"position": i, "value": last, "pages": pages, "page_size": page_size}
        if last > page_size:
            yield Finding(mp.LAST_PAGE_LEN_TOO_LARGE, "kv_last_page_len", place)
        elif last < 0 or (pages > 0 and last == 0):
            wrong = mp.LAST_PAGE_LEN_NEGATIVE if last < 0 else mp.LAST_PAGE_LEN_ZERO
            yield Finding(wrong, "kv_last_page_len", place)
