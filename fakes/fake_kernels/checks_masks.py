"""Custom masks: from a caller's booleans or bytes to what a kernel reads, and what can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from fake_kernels import mistakes_masks as m
from fake_kernels.bits import packed_segments
from fake_kernels.findings import Finding
from fake_kernels.outcomes import Path


@dataclass(frozen=True)
class MaskOf:
    """The mask of one plan, as the caller gave it.

    mask: bool [sum of rows * kv length] or None. packed: uint8 bytes, looked at first. rows, kv_lens: of
    each request, as plan computes them. names: the caller's words for the two.
    """

    mask: torch.Tensor | None
    packed: torch.Tensor | None
    rows: Sequence[int]
    kv_lens: Sequence[int]
    names: tuple[str, str] = ("custom_mask", "packed_custom_mask")

    @property
    def is_given(self) -> bool:
        return self.mask is not None or self.packed is not None

    @property
    def argument(self) -> str:
        return self.names[1] if self.packed is not None else self.names[0]

    @property
    def sizes(self) -> list[int]:
        """Bits of each request."""
        return [n * length for n, length in zip(self.rows, self.kv_lens, strict=True)]

    @property
    def sums(self) -> list[int]:
        """Running sum of `sizes` from 0."""
        return [0, *accumulate(self.sizes)]

    def findings(self, path: Path) -> Iterator[Finding]:
        """Everything wrong with a mask that is given."""
        given, expected = (self.packed, "uint8") if self.packed is not None else (self.mask, "bool")
        if not isinstance(given, torch.Tensor):
            yield Finding(m.MASK_TYPE, self.argument, {"dtype": type(given).__name__, "expected": expected})
            return
        if path == "fa3":
            yield Finding(m.MASK_ON_FA3, self.argument)
        for i, (n, length) in enumerate(zip(self.rows, self.kv_lens, strict=True)):
            if n > 0 and length < 0:
                yield Finding(m.MASK_OF_EMPTY, self.argument, {"request": i, "rows": n, "length": length})
                return
        if self.packed is not None:
            yield from self._packed_findings(self.packed)
        elif self.mask is not None:
            if self.mask.dtype not in (torch.bool, torch.uint8):
                params = {"dtype": str(self.mask.dtype), "expected": "bool"}
                yield Finding(m.MASK_TYPE, self.argument, params)
            if self.mask.numel() != self.sums[-1]:
                params = {"got": self.mask.numel(), "expected": self.sums[-1]}
                yield Finding(m.MASK_SIZE, self.argument, params)

    def _packed_findings(self, packed: torch.Tensor) -> Iterator[Finding]:
        if packed.dtype != torch.uint8:
            yield Finding(m.MASK_TYPE, self.argument, {"dtype": str(packed.dtype), "expected": "uint8"})
        ends = [start + -(-size // 8) for start, size in zip(self.sums, self.sizes, strict=False) if size > 0]
        if packed.numel() >= max(ends, default=0):
            return
        joined = sum(-(-size // 8) for size in self.sizes)
        if packed.numel() == joined:
            late = next(i for i, start in enumerate(self.sums) if start > 0 and self.sizes[i] > 0)
            yield Finding(
                m.PACKED_SEGMENTS,
                self.argument,
                {"batch": len(self.sizes), "got": joined, "request": late, "start": self.sums[late]},
            )
        yield Finding(m.PACKED_SIZE, self.argument, {"got": packed.numel(), "expected": joined})

    def read(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What the kernel gets: bytes, uint8 [n], and where each request's begin, int32 [batch + 1].

        With packed bits the starts are those that plan computes: counted in elements (prefill.py,
        _compute_page_mask_indptr without segment_packbits).
        """
        if self.packed is not None:
            return self.packed.flatten().clone(), torch.tensor(self.sums, dtype=torch.int32)
        assert self.mask is not None
        starts = [0, *accumulate(-(-size // 8) for size in self.sizes)]
        bits = packed_segments(self.mask.flatten().to(torch.bool), self.sums, "little")
        return bits, torch.tensor(starts, dtype=torch.int32)


def check_sink_shape(name: str, sinks: object, heads: int, types: Sequence[torch.dtype]) -> Iterator[Finding]:
    """Whether there is one sink a query head, in one of these types."""
    known = isinstance(sinks, torch.Tensor)
    if known and list(sinks.shape) == [heads] and sinks.dtype in types:
        return
    got, dtype = (list(sinks.shape), str(sinks.dtype)) if known else ("none", type(sinks).__name__)
    params = {"got": got, "dtype": dtype, "heads": heads, "expected": str(types[0])}
    yield Finding(m.SINKS_SHAPE, name, params)
