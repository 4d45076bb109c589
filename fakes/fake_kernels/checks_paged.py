"""What can be read off paged metadata before any kernel runs: the findings about indptr, indices,
last_page_len, seq_lens and qo_indptr.

The order is from the cause to its consequences (types, then counts, then starts, then contents), so
that the first finding is the one to repair. Right metadata has no findings: this is held by tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import torch

from fake_kernels import mistakes_indptr as mi
from fake_kernels import mistakes_paged as m
from fake_kernels.findings import Finding, Mistake
from fake_kernels.outcomes import GARBAGE, HARMLESS, UNMEASURED, Outcome, Path, raises, verbatim
from fake_kernels.paged import as_read, device_lengths, host_lengths, told_lengths

DECODE_GROUPS = (1, 2, 3, 4, 6, 8, 16)
"""Query heads a KV head that CUDA-core decode is built for."""


@dataclass(frozen=True)
class PagedMetadata:
    """The arrays of one plan as the caller gave them, with the caller's names for messages.

    kv_indptr int32 [B+1] counts pages; indices int32 [>= kv_indptr[-1]] are page numbers; last_page_len
    int32 [B]; seq_lens [B] or None; qo_indptr int32 [B+1] counts tokens, None for decode.
    copied: whether the arrays are copied into int32 buffers of the caller's (CUDA graphs), which makes their strides no
    matter, and the types of indices and last_page_len neither.
    fast: the kernel of an earlier plan that fast_decode_plan goes on with, None for a plan of its own.
    """

    kv_indptr: torch.Tensor
    indices: torch.Tensor
    last_page_len: torch.Tensor
    page_size: int
    seq_lens: torch.Tensor | None = None
    qo_indptr: torch.Tensor | None = None
    copied: bool = False
    fast: Path | None = None
    indptr_name: str = "indptr"
    indices_name: str = "indices"
    last_name: str = "last_page_len"
    qo_name: str = "qo_indptr"

    @property
    def batch(self) -> int:
        """Requests, counted as the library does: by last_page_len in decode, by qo_indptr in prefill."""
        if self.qo_indptr is not None:
            return len(self.qo_indptr) - 1
        return len(self.last_page_len)

    def named(self) -> Iterator[tuple[str, torch.Tensor, Mistake, Mistake]]:
        """Each array that is read as int32 where it lies: name, tensor, the mistakes of type and stride."""
        if self.qo_indptr is not None:
            yield self.qo_name, self.qo_indptr, mi.QO_INDPTR_NOT_INT32, mi.NOT_CONTIGUOUS
        yield self.indptr_name, self.kv_indptr, mi.KV_INDPTR_NOT_INT32, mi.NOT_CONTIGUOUS
        if self.copied:
            return
        yield self.indices_name, self.indices, m.INDICES_NOT_INT32, m.INDICES_NOT_CONTIGUOUS
        yield self.last_name, self.last_page_len, m.LAST_PAGE_LEN_NOT_INT32, mi.NOT_CONTIGUOUS


def check_vectors(meta: PagedMetadata, path: Path = "persistent") -> Iterator[Finding]:
    """Whether the arrays are one-dimensional tensors at all; the other checks rely on it."""
    given = [
        (meta.indptr_name, meta.kv_indptr),
        (meta.indices_name, meta.indices),
        (meta.last_name, meta.last_page_len),
    ]
    if meta.qo_indptr is not None:
        given.insert(0, (meta.qo_name, meta.qo_indptr))
    for name, tensor in given:
        if not isinstance(tensor, torch.Tensor):
            kind = type(tensor).__name__
            message = f"'{kind}' object has no attribute 'to'"
            yield Finding(mi.NOT_A_TENSOR, name, {"type": kind}, raises(AttributeError, message))
        elif tensor.ndim != 1:
            measured = tensor is meta.kv_indptr and path != "persistent"
            outcome = _arithmetic_of_shapes(meta) if measured else UNMEASURED
            yield Finding(mi.NOT_A_VECTOR, name, {"shape": list(tensor.shape)}, outcome)
    told = meta.seq_lens
    if told is not None and not isinstance(told, torch.Tensor):
        kind = type(told).__name__
        message = f"'{kind}' object has no attribute 'cpu'"
        yield Finding(mi.NOT_A_TENSOR, "seq_lens", {"type": kind}, raises(AttributeError, message))
    elif told is not None and not _holds_whole_numbers(told):
        yield Finding(m.SEQ_LENS_TYPE, "seq_lens", {"dtype": _dtype_name(told)})


def _holds_whole_numbers(lengths: torch.Tensor) -> bool:
    if lengths.is_floating_point():
        return bool((lengths == lengths.trunc()).all())
    return not lengths.is_complex() and lengths.dtype != torch.bool


def _arithmetic_of_shapes(meta: PagedMetadata) -> Outcome:
    """torch's own words when plan adds page counts of an indptr with two dimensions to last_page_len."""
    if meta.seq_lens is not None or meta.fast is not None or not isinstance(meta.last_page_len, torch.Tensor):
        return UNMEASURED
    try:
        torch.add(meta.kv_indptr[1:] - meta.kv_indptr[:-1], meta.last_page_len)
    except (RuntimeError, IndexError) as failure:
        if isinstance(failure, RuntimeError):
            return raises(RuntimeError, verbatim(str(failure)))
    return UNMEASURED


def check_metadata(meta: PagedMetadata, path: Path) -> Iterator[Finding]:
    """Everything wrong with the arrays of a plan, most telling first. Nothing for a right batch."""
    if meta.page_size < 1:
        outcome = m.PAGE_SIZE_ZERO.get(path) if meta.page_size == 0 and meta.fast is None else None
        yield Finding(m.PAGE_SIZE_INVALID, "page_size", {"value": meta.page_size}, outcome)
        return
    yield from _check_types(meta)
    yield from _check_counts(meta, path)
    yield from _check_reading(meta, path)
    if meta.qo_indptr is not None:
        yield from _check_qo_indptr(meta, path)
    yield from _check_kv_indptr(meta)
    yield from _check_indices(meta, path)
    yield from _check_last_page_len(meta)
    yield from _check_seq_lens(meta, path)


def check_heads(num_qo_heads: int, num_kv_heads: int, path: Path) -> Iterator[Finding]:
    """Whether query heads can share the KV heads, and whether the decode kernel exists for that."""
    if num_kv_heads < 1 or num_qo_heads < 1 or num_qo_heads % num_kv_heads:
        yield Finding(m.HEADS_NOT_DIVISIBLE, "num_qo_heads", {"value": num_qo_heads, "kv": num_kv_heads})
        return
    group = num_qo_heads // num_kv_heads
    if path == "dec" and group not in DECODE_GROUPS:
        yield Finding(
            m.GROUP_SIZE_UNSUPPORTED,
            "num_qo_heads",
            {"value": group, "heads": num_qo_heads, "kv": num_kv_heads},
        )


def check_pages(indices: torch.Tensor, used: int, num_pages: int, name: str) -> Iterator[Finding]:
    """Whether the page numbers that will be read (`indices[:used]`) exist in a pool of `num_pages`."""
    read = indices[:used]
    if read.numel() == 0:
        return
    if int(read.min()) < 0:
        position = int((read < 0).nonzero()[0])
        yield Finding(m.PAGE_NEGATIVE, name, {"position": position, "value": int(read[position])})
    if int(read.max()) >= num_pages:
        position = int((read >= num_pages).nonzero()[0])
        yield Finding(
            m.PAGE_OUT_OF_RANGE,
            name,
            {
                "position": position,
                "value": int(indices[position]),
                "pages": num_pages,
                "last": num_pages - 1,
            },
        )


def reads_on(indices: torch.Tensor, entries: int) -> bool:
    """Whether these int32 page numbers are the beginning of a longer tensor, in whose memory so many entries are found."""
    return indices.dtype == torch.int32 and len(as_read(indices, entries)) == entries


def first_decrease(entries: list[int]) -> dict[str, int] | None:
    """The place where a running sum goes down, as the params of a finding."""
    for i in range(len(entries) - 1):
        if entries[i + 1] < entries[i]:
            return {"at": i, "next": i + 1, "before": entries[i], "after": entries[i + 1]}
    return None


def _pointed(decrease: dict[str, int]) -> dict[str, int]:
    """The params of a decrease, pointing at the entry that is too small."""
    return decrease | {"position": decrease["next"], "value": decrease["after"]}


def _check_types(meta: PagedMetadata) -> Iterator[Finding]:
    """Types other than int32 and int64, which nobody measured."""
    for name, tensor, wrong_type, _ in meta.named():
        if tensor.dtype not in (torch.int32, torch.int64):
            yield Finding(wrong_type, name, {"dtype": _dtype_name(tensor)}, UNMEASURED)
    if meta.copied:
        for name, tensor, mistake in (
            (meta.indices_name, meta.indices, m.INDICES_NOT_INT32),
            (meta.last_name, meta.last_page_len, m.LAST_PAGE_LEN_NOT_INT32),
        ):
            if tensor.is_complex():  # no copy makes integers of these
                yield Finding(mistake, name, {"dtype": _dtype_name(tensor)}, UNMEASURED)


def _check_reading(meta: PagedMetadata, path: Path) -> Iterator[Finding]:
    """Whether reading int32 values one after the other finds what the caller put there."""
    for name, tensor, wrong_type, wrong_stride in meta.named():
        if tensor.dtype != torch.int32:
            params: dict[str, object] = {"dtype": _dtype_name(tensor)}
            outcome = None
            if wrong_type is mi.KV_INDPTR_NOT_INT32 and meta.fast is not None:
                # No module is built for that type: the compiled one checks it, or reads it as int32.
                outcome = mi.INDPTR_TYPE_CHECKED if meta.fast == "dec" else UNMEASURED
            if wrong_type is mi.QO_INDPTR_NOT_INT32:
                decrease = first_decrease(as_read(tensor, len(tensor)).tolist())
                params |= decrease or {}
                outcome = None if decrease else UNMEASURED
            yield Finding(wrong_type, name, params, outcome)
        if tensor.numel() > 1 and tensor.stride(0) != 1 and not meta.copied:
            outcome = None if tensor is meta.indices else _strided(meta, tensor, path)
            yield Finding(wrong_stride, name, {"stride": tensor.stride(0)}, outcome)


def _strided(meta: PagedMetadata, tensor: torch.Tensor, path: Path) -> Outcome:
    """What is known of an array other than the indices that lies apart: of indptr in a plan of its own."""
    if tensor is not meta.kv_indptr or meta.fast is not None or tensor.dtype != torch.int32:
        return UNMEASURED
    falls = first_decrease(as_read(tensor, len(tensor)).tolist()) is not None
    if path == "dec":
        return mi.STRIDED_INDPTR_FALLS if falls else UNMEASURED
    return mi.STRIDED_INDPTR.get(path, UNMEASURED)


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _check_counts(meta: PagedMetadata, path: Path) -> Iterator[Finding]:
    """Whether the arrays describe one number of requests, and which of them is out of step."""
    indptr, last = len(meta.kv_indptr), len(meta.last_page_len)
    if meta.qo_indptr is not None:
        rows = len(meta.qo_indptr)
        if indptr == last + 1 and rows != indptr and indptr > 1:
            first = int(meta.qo_indptr[0]) if rows else 0
            lacks_zero = rows == last and first != 0
            params = {"got": rows, "expected": last + 1, "batch": last}
            if rows < 2:
                yield Finding(mi.QO_INDPTR_COUNT, meta.qo_name, params, UNMEASURED)
            elif lacks_zero:
                params |= {"position": 0, "value": first}
                shifted = mi.ROWS_SHIFTED.get(path, UNMEASURED) if first > 0 else UNMEASURED
                yield Finding(mi.QO_INDPTR_NO_LEADING_ZERO, meta.qo_name, params, shifted)
            else:
                params["value"] = int(meta.qo_indptr[-1])
                yield Finding(mi.QO_INDPTR_COUNT, meta.qo_name, params, _qo_count(meta.qo_indptr, last, path))
            return
        batch = rows - 1
    elif indptr == last + 1:
        batch = last
    else:
        # Which of the two is wrong? seq_lens decides; else an indptr that begins with 0 is believed.
        believed = indptr >= 1 and int(meta.kv_indptr[0]) == 0
        batch = meta.seq_lens.numel() if meta.seq_lens is not None else (indptr - 1 if believed else last)
    if batch < 1:
        name = meta.qo_name if meta.qo_indptr is not None else meta.last_name
        empty = indptr == 1 and last == 0 and meta.fast is None and meta.seq_lens is None and not meta.copied
        yield Finding(
            mi.EMPTY_BATCH, name, {}, mi.EMPTY_BATCH_OUTCOMES.get(path, UNMEASURED) if empty else UNMEASURED
        )
        return
    if last != batch:
        arithmetic, outcome = _length_arithmetic(meta)
        yield Finding(
            mi.LAST_PAGE_LEN_COUNT, meta.last_name, {"got": last, "expected": batch} | arithmetic, outcome
        )
    if indptr != batch + 1:
        yield _indptr_count(meta, batch)


def _qo_count(qo_indptr: torch.Tensor, requests: int, path: Path) -> Outcome:
    """What another number of entries than `requests` + 1 leads to."""
    if path == "persistent":
        return UNMEASURED
    if len(qo_indptr) <= requests:
        return mi.ROWS_DIFFER
    return HARMLESS if bool((qo_indptr[requests:] == qo_indptr[-1]).all()) else UNMEASURED


def _indptr_count(meta: PagedMetadata, batch: int) -> Finding:
    entries = meta.kv_indptr.tolist()
    arithmetic, outcome = _length_arithmetic(meta)
    if len(entries) == batch and entries[0] != 0:
        if _looks_like_lengths(meta, entries):
            return Finding(
                mi.KV_INDPTR_IS_LENGTHS,
                meta.indptr_name,
                _sums(entries) | arithmetic,
                outcome or mi.SIZES_DIFFER,
            )
        return Finding(
            mi.KV_INDPTR_NO_LEADING_ZERO,
            meta.indptr_name,
            {"position": 0, "value": entries[0], "got": batch, "expected": batch + 1, "batch": batch}
            | arithmetic,
            outcome,
        )
    return Finding(
        mi.KV_INDPTR_COUNT,
        meta.indptr_name,
        {"got": len(entries), "expected": batch + 1, "batch": batch} | arithmetic,
        outcome,
    )


def _length_arithmetic(meta: PagedMetadata) -> tuple[dict[str, str], Outcome | None]:
    """torch's own words when plan adds page counts to last_page_len; or, when it doesn't come to that
    (seq_lens given, a fast plan of CUDA-core decode, sizes that broadcast), that nobody measured what follows."""
    if meta.seq_lens is not None or meta.fast == "dec":
        return {}, UNMEASURED
    pages = meta.kv_indptr[1:] - meta.kv_indptr[:-1]
    try:
        torch.add(pages, meta.last_page_len)
    except RuntimeError as failure:
        return {"broadcast": str(failure)}, None
    return {}, UNMEASURED


def _looks_like_lengths(meta: PagedMetadata, entries: list[int]) -> bool:
    """Whether these entries are page counts: seq_lens says so, or they add up to the indices."""
    pages = _pages_by_seq_lens(meta)
    if pages is not None:
        return entries == pages
    if len(entries) == 1:
        return False
    return entries[-1] != len(meta.indices) and sum(entries) == len(meta.indices)


def _pages_by_seq_lens(meta: PagedMetadata) -> list[int] | None:
    if meta.seq_lens is None or meta.seq_lens.numel() != meta.batch:
        return None
    return [-(-n // meta.page_size) for n in told_lengths(meta.seq_lens)]


def _running_sum(lengths: list[int]) -> list[int]:
    return [0, *accumulate(lengths)]


def _sums(lengths: list[int]) -> dict[str, object]:
    shown = _shown(lengths)
    return {"entries": shown, "lengths": shown, "sums": _shown(_running_sum(lengths))}


def _shown(values: list[int]) -> str:
    return str(values) if len(values) <= 8 else f"[{', '.join(map(str, values[:8]))}, ...]"


def _check_qo_indptr(meta: PagedMetadata, path: Path) -> Iterator[Finding]:
    assert meta.qo_indptr is not None
    entries = meta.qo_indptr.tolist()
    decrease = first_decrease(entries)
    if decrease is not None:
        yield Finding(mi.QO_INDPTR_DECREASING, meta.qo_name, _pointed(decrease))
    if entries[0] != 0:
        yield Finding(
            mi.QO_INDPTR_NO_LEADING_ZERO,
            meta.qo_name,
            {
                "position": 0,
                "value": entries[0],
                "got": len(entries),
                "expected": len(entries),
                "batch": meta.batch,
            },
            mi.ROWS_SHIFTED.get(path, UNMEASURED) if entries[0] > 0 else UNMEASURED,
        )


def _check_kv_indptr(meta: PagedMetadata) -> Iterator[Finding]:
    entries = meta.kv_indptr.tolist()
    decrease = first_decrease(entries)
    # The planners of tc and fa2 notice only a decrease; lengths that happen to grow pass them.
    unnoticed = GARBAGE if decrease is None else None
    pages = _pages_by_seq_lens(meta)
    after_zero = entries[0] == 0 and meta.batch > 1 and entries[1:] == pages
    with_extra = entries[0] != 0 and entries[:-1] == pages
    # After an empty request lengths and their running sum can be the same numbers.
    if pages is not None and (after_zero or with_extra) and entries != _running_sum(pages):
        yield Finding(mi.KV_INDPTR_IS_LENGTHS, meta.indptr_name, _sums(pages) | (decrease or {}), unnoticed)
    elif decrease is not None:
        lengths = entries[1:] if entries[0] == 0 else entries[: meta.batch]
        if sum(lengths) == len(meta.indices):
            yield Finding(mi.KV_INDPTR_IS_LENGTHS, meta.indptr_name, _sums(lengths) | decrease)
        else:
            yield Finding(mi.KV_INDPTR_DECREASING, meta.indptr_name, _pointed(decrease))
    if entries[0] != 0:
        yield Finding(mi.KV_INDPTR_NOT_FROM_ZERO, meta.indptr_name, {"position": 0, "value": entries[0]})


def _check_indices(meta: PagedMetadata, path: Path) -> Iterator[Finding]:
    total, given = int(meta.kv_indptr[-1]), len(meta.indices)
    if given < total:
        tokens = _counts_tokens(meta)
        goes_on = path != "persistent" and reads_on(meta.indices, total)
        yield Finding(
            mi.KV_INDPTR_IN_TOKENS if tokens else m.INDICES_TOO_SHORT,
            meta.indptr_name if tokens else meta.indices_name,
            {"got": given, "expected": total, "indptr": meta.indptr_name, "page_size": meta.page_size},
            # Of a slice the kernel reads what lies behind it: right numbers, by luck.
            HARMLESS if goes_on and not tokens and not meta.copied else None,
        )
    used = meta.indices[:total]
    if used.numel() and int(used.min()) < 0:
        position = int((used < 0).nonzero()[0])
        yield Finding(
            m.PAGE_NEGATIVE, meta.indices_name, {"position": position, "value": int(used[position])}
        )


def _counts_tokens(meta: PagedMetadata) -> bool:
    """Whether kv_indptr sums tokens: with that reading the indices are exactly enough."""
    if meta.page_size == 1:
        return False
    lengths = (meta.kv_indptr[1:] - meta.kv_indptr[:-1]).tolist()
    return len(meta.indices) == sum(-(-int(n) // meta.page_size) for n in lengths)


def _check_last_page_len(meta: PagedMetadata) -> Iterator[Finding]:
    size = meta.page_size
    indptr = meta.kv_indptr.tolist()
    told = told_lengths(meta.seq_lens) if meta.seq_lens is not None else None
    for i, last in enumerate(meta.last_page_len.tolist()):
        pages = indptr[i + 1] - indptr[i]
        place = {"position": i, "value": last, "pages": pages, "page_size": size}
        if last < 0:
            stays_positive = pages > 0 and (pages - 1) * size + last > 0
            yield Finding(
                m.LAST_PAGE_LEN_NEGATIVE, meta.last_name, place, None if stays_positive else UNMEASURED
            )
        elif pages > 0 and last == 0:
            yield Finding(m.LAST_PAGE_LEN_ZERO, meta.last_name, place)
        elif last > size:
            is_length = last == told[i] if told is not None and i < len(told) else -(-last // size) == pages
            yield Finding(
                m.LAST_PAGE_LEN_IS_LENGTH if is_length else m.LAST_PAGE_LEN_TOO_LARGE,
                meta.last_name,
                place | {"should": (last - 1) % size + 1},
            )


def _check_seq_lens(meta: PagedMetadata, path: Path) -> Iterator[Finding]:
    indptr, last = meta.kv_indptr.tolist(), meta.last_page_len.tolist()
    device = device_lengths(indptr, last, meta.page_size)
    if meta.seq_lens is None:
        if path == "fa3":
            for i, (here, there) in enumerate(
                zip(host_lengths(indptr, last, meta.page_size), device, strict=True)
            ):
                if here != there:
                    yield Finding(m.LAST_PAGE_LEN_OF_EMPTY, meta.last_name, {"position": i, "value": here})
        return
    told = told_lengths(meta.seq_lens)
    if len(told) != len(device):
        outcome = m.SEQ_LENS_SHORT.get(path, UNMEASURED) if len(told) < len(device) else UNMEASURED
        yield Finding(m.SEQ_LENS_COUNT, "seq_lens", {"got": len(told), "expected": len(device)}, outcome)
        return
    for i, (given, should) in enumerate(zip(told, device, strict=True)):
        if given != should:
            yield Finding(m.SEQ_LENS_WRONG, "seq_lens", {"position": i, "value": given, "should": should})
            return
