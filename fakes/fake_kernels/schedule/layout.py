"""Where a plan puts its arrays in the two workspaces, and whether they fit.

The library carves both buffers with one small allocator (include/flashinfer/allocator.h): in order, each
piece aligned, the first that doesn't fit is an error at plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Buffer = Literal["float", "int"]


@dataclass(frozen=True)
class Piece:
    """One allocation: `size` bytes at `offset` of a workspace, under the library's own name."""

    buffer: Buffer
    name: str
    size: int
    alignment: int
    offset: int


@dataclass(frozen=True)
class Overflow:
    """The piece that doesn't fit and how many bytes were left for it."""

    piece: Piece
    available: int

    def message(self) -> str:
        """The library's own words (allocator.h, aligned_alloc)."""
        return (
            f"Buffer overflow when allocating memory for {self.piece.name} with size {self.piece.size} and "
            f"alignment {self.piece.alignment}, but only {self.available} bytes available in "
            "AlignedAllocator. Increase the workspace buffer size."
        )


class Layout:
    """Pieces in the order in which a planner takes them; both buffers begin 16-byte aligned."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._used: dict[Buffer, int] = {"float": 0, "int": 0}

    def take(self, buffer: Buffer, size: int, name: str, alignment: int = 16) -> int:
        """Append a piece; its offset in bytes."""
        offset = -(-self._used[buffer] // alignment) * alignment
        self.pieces.append(Piece(buffer, name, size, alignment, offset))
        self._used[buffer] = offset + size
        return offset

    def used(self, buffer: Buffer) -> int:
        """Bytes of a workspace that the pieces take up, the least size that doesn't overflow."""
        return self._used[buffer]

    def overflow(self, float_bytes: int, int_bytes: int) -> Overflow | None:
        """The first piece that workspaces of these sizes have no room for, None if all fit."""
        space: dict[Buffer, int] = {"float": float_bytes, "int": int_bytes}
        taken: dict[Buffer, int] = {"float": 0, "int": 0}
        for piece in self.pieces:
            if piece.offset + piece.size > space[piece.buffer]:
                return Overflow(piece, space[piece.buffer] - taken[piece.buffer])
            taken[piece.buffer] = piece.offset + piece.size
        return None
