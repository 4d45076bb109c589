"""What can be read off a batch of BatchAttention: the arrays that it shares with the paged wrappers are checked as theirs
are, its lengths are its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from fake_kernels import mistakes_indptr as mi
from fake_kernels import mistakes_persistent as m
from fake_kernels.checks_paged import PagedMetadata, check_metadata
from fake_kernels.findings import Finding
from fake_kernels.outcomes import GARBAGE, UNMEASURED, raises


def check_batch(meta: PagedMetadata) -> Iterator[Finding]:
    """Findings about qo_indptr, kv_indptr and kv_indices, and whether there is a length for every request.

    meta: as given to plan, with kv_len_arr in the place of last_page_len.
    """
    assert meta.qo_indptr is not None
    lengths = meta.last_page_len
    if lengths.dtype != torch.int32:
        dtype = {"dtype": str(lengths.dtype).removeprefix("torch.")}
        outcome = GARBAGE if lengths.dtype == torch.int64 else UNMEASURED
        yield Finding(m.KV_LEN_NOT_INT32, meta.last_name, dtype, outcome)
    if lengths.numel() > 1 and lengths.stride(0) != 1:
        yield Finding(mi.NOT_CONTIGUOUS, meta.last_name, {"stride": lengths.stride(0)})
    requests = len(meta.qo_indptr) - 1
    if len(meta.kv_indptr) == requests + 1 and len(lengths) != requests:
        params = {"got": len(lengths), "expected": requests}
        outcome = GARBAGE
        if len(lengths) > requests:
            last = f"qo_indptr[{requests + 1}]0 - qo_indptr[{requests}]{int(meta.qo_indptr[-1])}"
            outcome = raises(RuntimeError, f"{last} should be non-negative")
        yield Finding(m.KV_LEN_COUNT, meta.last_name, params, outcome)
        return
    # The paged checks want a last_page_len; a full one is never wrong.
    full = lengths.new_full(lengths.shape, max(1, min(meta.page_size, 2**31 - 1)), dtype=torch.int32)
    yield from check_metadata(replace(meta, last_page_len=full), "persistent")


def check_lengths(meta: PagedMetadata) -> Iterator[Finding]:
    """Whether every request has the pages that its length needs."""
    indptr = meta.kv_indptr.tolist()
    for i, length in enumerate(meta.last_page_len.tolist()):
        pages = indptr[i + 1] - indptr[i]
        place = {"position": i, "value": length, "pages": pages, "page_size": meta.page_size}
        if length < 0:
            yield Finding(m.KV_LEN_NEGATIVE, meta.last_name, place)
        elif length > pages * meta.page_size:
            yield Finding(m.KV_LEN_BEYOND_PAGES, meta.last_name, place)
