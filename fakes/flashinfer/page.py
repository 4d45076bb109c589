"""Operations on paged KV caches: where new tokens go, and writing them there."""

from __future__ import annotations

from dataclasses import replace

import torch
from fake_kernels import mistakes_page as m
from fake_kernels.checks_page import (
    Append,
    check_append,
    check_append_indptr,
    check_int32,
    check_integers,
    check_lengths,
    check_output,
)
from fake_kernels.checks_rows import acted, require_numbers
from fake_kernels.checks_values import check_numbers
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.mode import is_strict
from fake_kernels.outcomes import UNMEASURED

from flashinfer._cache import unpack_cache


def get_seq_lens(kv_indptr: torch.Tensor, kv_last_page_len: torch.Tensor, page_size: int) -> torch.Tensor:
    """KV length of each request: max(pages - 1, 0) * page_size + kv_last_page_len, [batch].

    kv_indptr [batch + 1] counts pages. A request without pages gets kv_last_page_len, while the attention
    kernels take 0 for it (page.cuh, get_length): strict mode wants 0 there.
    """
    require_context()
    if is_strict():
        # Plain arithmetic of torch there: a float page_size gives float lengths.
        numbers = check_numbers({"page_size": page_size})
        settle((replace(found, outcome=UNMEASURED) for found in numbers), "rows", during="run")
        settle(check_integers(kv_indptr=kv_indptr, kv_last_page_len=kv_last_page_len), "rows", during="run")
        found = check_lengths(kv_indptr.tolist(), kv_last_page_len.tolist(), page_size)
        settle(found, "rows", during="run")
    pages = kv_indptr[1:] - kv_indptr[:-1]
    return torch.clamp(pages - 1, min=0) * page_size + kv_last_page_len


def get_batch_indices_positions(
    append_indptr: torch.Tensor,
    seq_lens: torch.Tensor,
    nnz: int,
    batch_indices: torch.Tensor | None = None,
    positions: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each appended token its request and its position in the request: int32 [nnz] each.

    append_indptr: [batch + 1], running sum of appended tokens. seq_lens: [batch], lengths after the append:
    the j-th of n tokens gets position seq_len - n + j. nnz may be more than append_indptr[-1]: those rows
    get request -1, and position 0 or what stood in the caller's `positions` (triton/page.py).
    batch_indices=, positions=: int32 [nnz], filled in place. ValueError for another shape or type.
    """
    require_numbers(nnz=nnz)
    acted(check_integers(append_indptr=append_indptr, seq_lens=seq_lens))
    acted(check_int32(append_indptr=append_indptr, seq_lens=seq_lens))
    append_indptr, seq_lens = append_indptr.int(), seq_lens.int()
    acted(check_append_indptr(append_indptr, seq_lens, nnz))
    missing = len(append_indptr) - 1 - len(seq_lens)
    if missing > 0:  # zeros lie behind it, as they were found to
        seq_lens = torch.cat([seq_lens, seq_lens.new_zeros(missing)])
    for name, given in (("batch_indices", batch_indices), ("positions", positions)):
        if given is not None:
            settle(check_output(name, given, nnz), "rows", during="run")
    device = append_indptr.device
    if batch_indices is None:
        batch_indices = torch.empty(nnz, dtype=torch.int32, device=device)
    if positions is None:
        positions = torch.zeros(nnz, dtype=torch.int32, device=device)
    batch_indices.fill_(-1)
    counts = (append_indptr[1:] - append_indptr[:-1]).long()
    requests = torch.arange(len(counts), device=device).repeat_interleave(counts)[:nnz]
    rows = torch.arange(len(requests), device=device)
    batch_indices[: len(rows)] = requests.int()
    positions[: len(rows)] = (rows + seq_lens.long()[requests] - append_indptr[1:].long()[requests]).int()
    return batch_indices, positions


def append_paged_kv_cache(
    append_key: torch.Tensor,
    append_value: torch.Tensor,
    batch_indices: torch.Tensor,
    positions: torch.Tensor,
    paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    kv_layout: str = "NHD",
) -> None:
    """Write row i of append_key and append_value, [nnz, kv_heads, head_dim], to position positions[i] of
    request batch_indices[i]. In place.

    paged_kv_cache: as for the attention wrappers, of the new rows' type. kv_indices, kv_indptr [batch + 1]
    and kv_last_page_len [batch] describe the cache after the append. Index arrays of any integer type are
    brought to int32, as the library does. Strict mode checks what the kernel doesn't: it computes a page
    from kv_indptr[request] * page_size + position and writes (page.cuh, AppendPagedKVCacheKernel).
    """
    require_context()
    if kv_layout not in ("NHD", "HND"):
        settle([Finding(m.LAYOUT_UNKNOWN, "kv_layout", {"value": kv_layout})], "rows", during="run")
    k_cache, v_cache = unpack_cache(paged_kv_cache, "NHD" if kv_layout == "NHD" else "HND", "rows")
    arrays = {
        "batch_indices": batch_indices,
        "positions": positions,
        "kv_indices": kv_indices,
        "kv_indptr": kv_indptr,
        "kv_last_page_len": kv_last_page_len,
    }
    acted(check_integers(**arrays))
    used = int(kv_indptr[-1]) if len(kv_indptr) else 0  # what stands behind these pages may be anything
    acted(check_int32(**arrays | {"kv_indices": kv_indices[: max(0, used)]}))
    if kv_layout == "HND":
        k_cache, v_cache = k_cache.transpose(1, 2), v_cache.transpose(1, 2)
    call = Append(
        append_key,
        append_value,
        batch_indices.int(),
        positions.int(),
        k_cache,
        v_cache,
        kv_indices.int(),
        kv_indptr.int(),
        kv_last_page_len.int(),
    )
    acted(check_append(call))
    call.write()


__all__ = ["append_paged_kv_cache", "get_batch_indices_positions", "get_seq_lens"]
