"""What lies at an address: kernels get one and believe what they were told about it.

Faithful mode walks in the caller's own memory as a kernel would, as far as that memory goes. Behind it a GPU finds
whatever the allocator keeps there; here it is always zeros.
"""

from __future__ import annotations

import torch

from fake_kernels.outcomes import GARBAGE, ILLEGAL, Outcome

ALLOCATOR_BLOCK = 2 << 20
"""Bytes in which torch's allocator takes memory for small tensors from CUDA: as far as that behind a tensor there is
likely to be memory. What was measured lay below 150 kB (no error) or beyond 100 MB (an illegal access)."""


def beyond(distance: int) -> Outcome:
    """What comes of an access this many bytes behind the end of a tensor."""
    return ILLEGAL if distance > ALLOCATOR_BLOCK else GARBAGE


def memory(tensor: torch.Tensor, entries: int) -> torch.Tensor:
    """The entries in memory from the tensor's first one on, whatever its strides: a view, [<= entries]."""
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided((min(entries, room),), (1,))


def dense(tensor: torch.Tensor, shape: tuple[int, ...] | torch.Size | None = None) -> torch.Tensor:
    """The tensor as a kernel sees it that takes it for a contiguous one of `shape`."""
    shape = tensor.shape if shape is None else torch.Size(shape)
    if tensor.is_contiguous() and shape == tensor.shape:
        return tensor
    held = memory(tensor, shape.numel())
    return torch.cat([held, held.new_zeros(shape.numel() - len(held))]).view(shape)


def bits(tensor: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...] | torch.Size) -> torch.Tensor:
    """The bits of a contiguous tensor as a kernel sees them that takes it for one of `dtype` and `shape`."""
    held = tensor.flatten().view(dtype)[: torch.Size(shape).numel()]
    return torch.cat([held, held.new_zeros(torch.Size(shape).numel() - len(held))]).view(shape)


def goes_on(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """The tensor with up to `rows` in its first dimension, as far as the caller's memory has more behind it: a view."""
    stride = tensor.stride(0)
    if stride <= 0 or not len(tensor):
        return tensor
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    row = 1 + sum((n - 1) * step for n, step in zip(tensor.shape[1:], tensor.stride()[1:], strict=True))
    there = max(len(tensor), min(rows, (room - row) // stride + 1))
    return tensor.as_strided((there, *tensor.shape[1:]), tensor.stride())


def longer(tensor: torch.Tensor, rows: int, *, reads_on: bool) -> torch.Tensor:
    """The tensor with its first dimension made `rows` long, for a kernel that believes it is. reads_on: what lies behind
    it in the caller's memory comes first, then zeros."""
    held = goes_on(tensor, rows) if reads_on else tensor
    return torch.cat([held, held.new_zeros(max(0, rows - len(held)), *tensor.shape[1:])])


def picked(table: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """table[at], with zeros for what is behind the table. at: int64 [n], not negative."""
    behind = at >= len(table)
    if not bool(behind.any()):
        return table[at]
    held = torch.cat([table[at[~behind]], table.new_zeros(1, *table.shape[1:])])
    places = torch.where(behind, len(held) - 1, (~behind).cumsum(0) - 1)
    return held[places]
