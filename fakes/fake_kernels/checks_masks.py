"""Custom masks: from a caller's booleans or bytes to what a kernel reads, and what can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import torch

from fake_kernels import mistakes_masks as m
from fake_kernels.bits import packed_segments
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding
from fake_kernels.outcomes import HARMLESS, UNMEASURED, Path
from fake_kernels.paged import as_read


@dataclass(frozen=True)
class MaskOf:
    """The mask of one plan, as the caller gave it.

    mask: bool [sum of rows * kv length] or None. packed: uint8 bytes, looked at first. rows, kv_lens: of
    each request, as plan computes them. names: the caller's words for the two. paged: whether it is a mask of the paged
    wrapper, with which mistakes were measured.
    """

    mask: torch.Tensor | None
    packed: torch.Tensor | None
    rows: Sequence[int]
    kv_lens: Sequence[int]
    names: tuple[str, str] = ("custom_mask", "packed_custom_mask")
    paged: bool = False

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
        """Everything wrong with a mask that is given, with what was measured about it."""
        for found in self._findings(path):
            measured = m.OF_PAGED_MASKS.get(found.mistake.code, {}) if self.paged else {}
            yield replace(found, outcome=found.outcome or measured.get(path, UNMEASURED))

    def _findings(self, path: Path) -> Iterator[Finding]:
        given, expected = (self.packed, "uint8") if self.packed is not None else (self.mask, "bool")
        if not isinstance(given, torch.Tensor):
            params = {"dtype": type(given).__name__, "expected": expected}
            yield Finding(m.MASK_TYPE, self.argument, params, UNMEASURED)
            return
        if path == "fa3":
            yield Finding(m.MASK_ON_FA3, self.argument)
        for i, (n, length) in enumerate(zip(self.rows, self.kv_lens, strict=True)):
            if n > 0 and length < 0:
                starts_before = min(self.sums[:-1]) < 0 and self.packed is None
                params = {"request": i, "rows": n, "length": length}
                yield Finding(m.MASK_OF_EMPTY, self.argument, params, None if starts_before else UNMEASURED)
                return
        if self.packed is not None:
            yield from self._packed_findings(self.packed)
        elif self.mask is not None:
            if self.mask.dtype not in (torch.bool, torch.uint8):
                params = {"dtype": str(self.mask.dtype), "expected": "bool"}
                outcome = None if self.mask.dtype == torch.float32 else UNMEASURED
                yield Finding(m.MASK_TYPE, self.argument, params, outcome)
            elif self.mask.dtype == torch.uint8 and bool((self.mask > 1).any()):
                yield Finding(m.MASK_VALUES, self.argument, {"value": int(self.mask.max())}, UNMEASURED)
            if self.mask.numel() != self.sums[-1]:
                params = {"got": self.mask.numel(), "expected": self.sums[-1]}
                too_short = self.mask.numel() < self.sums[-1]
                yield Finding(m.MASK_SIZE, self.argument, params, None if too_short else UNMEASURED)

    def _packed_findings(self, packed: torch.Tensor) -> Iterator[Finding]:
        if packed.dtype != torch.uint8:
            params = {"dtype": str(packed.dtype), "expected": "uint8"}
            yield Finding(m.MASK_TYPE, self.argument, params, UNMEASURED)
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
        given = self.packed if self.packed is not None else self.mask
        taken = (torch.uint8,) if self.packed is not None else (torch.bool, torch.uint8, torch.float32)
        if not isinstance(given, torch.Tensor) or given.dtype not in taken:
            # Faithful mode, where another mistake of the batch came first.
            raise not_modelled(self.argument, given)
        if self.packed is not None:
            return self.packed.flatten().clone(), torch.tensor(self.sums, dtype=torch.int32)
        assert self.mask is not None
        starts = [0, *accumulate(-(-size // 8) for size in self.sizes)]
        values = self.mask.flatten()
        if values.itemsize > 1:  # faithful mode
            bits = _packed_bytes(values.view(torch.uint8), self.sums)
        else:
            bits = packed_segments(values.to(torch.bool), self.sums, "little")
        return bits, torch.tensor(starts, dtype=torch.int32)


def _packed_bytes(values: torch.Tensor, sums: Sequence[int]) -> torch.Tensor:
    """What the packing kernel makes of bytes that it takes for booleans (uint8 [n]): it shifts each byte to its place in
    eight and joins them, so that larger ones spill over. Checked against the numbers of an H200."""
    parts = []
    for first, end in pairwise(sums):
        segment = values[first:end].int()
        eight = torch.cat([segment, segment.new_zeros(-len(segment) % 8)]).view(-1, 8)
        joined = eight[:, 0]
        for place in range(1, 8):
            joined = joined | (eight[:, place] << place)
        parts.append((joined & 255).to(torch.uint8))
    return torch.cat(parts) if parts else values.new_zeros(0)


def check_sink_shape(name: str, sinks: object, heads: int, types: Sequence[torch.dtype]) -> Iterator[Finding]:
    """Whether there is one sink a query head, in one of these types."""
    known = isinstance(sinks, torch.Tensor)
    if known and list(sinks.shape) == [heads] and sinks.dtype in types:
        return
    got, dtype = (list(sinks.shape), str(sinks.dtype)) if known else ("none", type(sinks).__name__)
    params = {"got": got, "dtype": dtype, "heads": heads, "expected": str(types[0])}
    yield Finding(m.SINKS_SHAPE, name, params)


def check_variant_sinks(name: str, sinks: object, heads: int, path: Path) -> Iterator[Finding]:
    """`check_sink_shape` for the sink wrapper, with what was measured: a half type, and too few of a longer tensor."""
    for found in check_sink_shape(name, sinks, heads, (torch.float32,)):
        outcome = UNMEASURED
        if isinstance(sinks, torch.Tensor) and sinks.ndim == 1 and sinks.is_contiguous() and path == "fa2":
            if sinks.dtype in (torch.float16, torch.bfloat16) and len(sinks) == heads:
                outcome = m.SINKS_READ_AS_FLOAT[path]
            elif sinks.dtype == torch.float32 and 0 < len(sinks) < heads:
                outcome = HARMLESS if len(as_read(sinks, heads)) == heads else UNMEASURED
        yield replace(found, mistake=m.VARIANT_SINKS_SHAPE, outcome=outcome)


def sinks_as_read(sinks: torch.Tensor, heads: int) -> torch.Tensor:
    """The float32 value for each head that the sink wrapper finds in the memory of `sinks`; 0 behind its end."""
    values = (
        as_read(sinks, heads) if sinks.dtype == torch.float32 else as_read(sinks.view(torch.int32), heads)
    )
    found = values.view(torch.float32)
    return torch.cat([found, found.new_zeros(heads - len(found))])
