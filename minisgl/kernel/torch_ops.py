"""The kernels in plain torch: right on every device, and what faster ones are compared with."""

from __future__ import annotations

import torch
import torch.nn.functional as F

# The number of rows that oneDNN chooses a weight's layout for; a product may have any number of them.
_PACKED_FOR_ROWS = 16


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


def pack_linear_weight(weight: torch.Tensor) -> torch.Tensor | None:
    """A weight [outputs, inputs] in the layout that oneDNN's product reads without rearranging it first, opaque
    to everything but `linear`; None where a plain product does as well: on a GPU, or in another dtype.

    Products with few rows, as in decoding, spend much of their time on that rearranging.
    """
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not _has_packed_products():
        return None
    packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_FOR_ROWS)
    return packed


def linear(
    x: torch.Tensor, weight: torch.Tensor, packed: torch.Tensor | None, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """x [..., inputs] times weight [outputs, inputs], plus bias [outputs]; by way of the packed weight if there is
    one, and then `weight` is not read."""
    if packed is None:
        return F.linear(x, weight, bias)
    y: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return y


def _has_packed_products() -> bool:
    """Not every build of torch has oneDNN, and these operators have no public name."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
