"""Bits in bytes: how boolean masks are packed before a kernel reads them.

The order of bits is numpy's: "big" puts the first element into the most significant bit, "little" into the
least. Attention kernels read "little".
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

_SHIFTS = {"little": tuple(range(8)), "big": tuple(range(7, -1, -1))}


def packed(values: torch.Tensor, order: str) -> torch.Tensor:
    """uint8 [ceil(n / 8)] of bool [n]; the last byte is filled up with zeros."""
    padded = torch.cat([values, values.new_zeros(-len(values) % 8)]).to(torch.uint8).view(-1, 8)
    return (padded << torch.tensor(_SHIFTS[order], dtype=torch.uint8)).sum(dim=1, dtype=torch.uint8)


def packed_segments(values: torch.Tensor, sums: Sequence[int], order: str) -> torch.Tensor:
    """Each segment `values[sums[i]:sums[i + 1]]` packed for itself, one after the other: every one begins
    at a byte of its own."""
    parts = [packed(values[sums[i] : sums[i + 1]], order) for i in range(len(sums) - 1)]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)
