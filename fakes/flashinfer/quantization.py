"""Packing of boolean masks into bits; the rest of the real module, numbers of 4 and 8 bits, is not modelled."""

from __future__ import annotations

from itertools import pairwise

import torch
from fake_kernels.bits import packed, packed_segments
from fake_kernels.checks_ragged import check_tensors
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.mistakes_masks import BIT_ORDER, SEGMENTS


def packbits(x: torch.Tensor, bitorder: str = "big") -> torch.Tensor:
    """uint8 [ceil(n / 8)] of x [n], bool or anything that is true or false; as numpy.packbits.

    RuntimeError for a bitorder other than "big" and "little".
    """
    require_context()
    _check_order(bitorder)
    settle(check_tensors(x=x), "rows", during="run")
    return packed(x.to(torch.bool).flatten(), bitorder)


def segment_packbits(
    x: torch.Tensor, indptr: torch.Tensor, bitorder: str = "big"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pack the segments of x [indptr[-1]], bool, each from a new byte on.

    indptr [segments + 1] counts elements. Returns the bytes, uint8 [new_indptr[-1]], and new_indptr int32
    [segments + 1], which counts bytes. RuntimeError for a bitorder other than "big" and "little".
    """
    require_context()
    _check_order(bitorder)
    settle(check_tensors(x=x, indptr=indptr), "rows", during="run")
    sums = indptr.flatten().tolist()
    counts = not (indptr.is_floating_point() or indptr.is_complex()) and indptr.ndim == 1 and len(sums) > 0
    covers = counts and sums[0] == 0 and sums[-1] == x.numel() and all(a <= b for a, b in pairwise(sums))
    if not covers or x.ndim != 1 or x.dtype not in (torch.bool, torch.uint8):
        params = {"entries": str(sums[:9]), "shape": list(x.shape), "dtype": str(x.dtype)}
        settle([Finding(SEGMENTS, "indptr", params)], "rows", during="run")
    bytes_of = [-(-(b - a) // 8) for a, b in pairwise(sums)]
    new = torch.tensor([0, *bytes_of], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    return packed_segments(x.to(torch.bool), sums, bitorder), new


def _check_order(bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        settle([Finding(BIT_ORDER, "bitorder", {"value": bitorder})], "rows", during="run")


__all__ = ["packbits", "segment_packbits"]
