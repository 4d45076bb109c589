"""The kernels in plain torch: right on every device, and what faster ones are compared with."""

from __future__ import annotations

import torch


def store_kv(
    k_cache: torch.Tensor, v_cache: torch.Tensor, out_loc: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> None:
    """Write each token's key and value to its place in the pool.

    k_cache, v_cache: [num_pages, page_size, H, D], written in place; out_loc: int32 [tokens], token
    positions;
    k, v: [tokens, H, D] (any strides). A position named twice keeps one of the two values.
    """
    heads, dim = k_cache.shape[-2:]
    k_cache.view(-1, heads, dim)[out_loc] = k
    v_cache.view(-1, heads, dim)[out_loc] = v


def embedding_lookup(
    weight: torch.Tensor, ids: torch.Tensor, vocab_range: tuple[int, int] | None = None
) -> torch.Tensor:
    """Rows of weight [rows, hidden] for ids int32 [tokens] -> [tokens, hidden].

    With vocab_range (first, end), weight holds only the rows of those token ids; an id outside of it gives
    zeros, so that the sum over ranks is the whole embedding.
    """
    if vocab_range is None:
        return weight.index_select(0, ids)
    first, end = vocab_range
    outside = (ids < first) | (ids >= end)
    rows = weight.index_select(0, (ids - first).masked_fill(outside, 0))
    return rows.masked_fill(outside.unsqueeze(1), 0)


def common_prefix_len(a: torch.Tensor, b: torch.Tensor) -> int:
    """How many tokens two sequences, int32 [m] and [n] on the CPU, have in common from the first on."""
    shorter = min(len(a), len(b))
    if not shorter:
        return 0
    different = a[:shorter] != b[:shorter]
    first = int(different.byte().argmax())  # 0 if none is, too
    return first if different[first] else shorter
