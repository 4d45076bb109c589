"""What cases of many problems are drawn from: lengths at page borders, pages of a shuffled pool, tensors.

A function of its `Rng` alone. What a function draws never changes, since stored submissions are replayed from their
seeds: for something else, add a function (`tests/judge/core/test_draw.py` has the numbers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from judge.core.rng import Rng

if TYPE_CHECKING:
    from torch import Tensor


def length(rng: Rng, page_size: int, longest: int = 40) -> int:
    """A length of at least 1, half of the time at a page border or one off it."""
    if rng.chance(1, 2):
        pages = rng.integer(1, max(1, longest // page_size))
        return min(longest, max(1, pages * page_size + rng.integer(-1, 1)))
    return rng.integer(1, longest)


def lengths(rng: Rng, count: int, page_size: int = 4, longest: int = 40) -> list[int]:
    """`count` such lengths."""
    return [length(rng, page_size, longest) for _ in range(count)]


def indptr(counts: Sequence[int]) -> Tensor:
    """int32 [n + 1]: where each of n stretches of these lengths begins, and where the last ends."""
    return i32([0, *accumulate(counts)])


def i32(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    """An int32 tensor of these values."""
    import torch

    return torch.tensor(values, dtype=torch.int32)


def pages(rng: Rng, counts: Sequence[int], spare: int = 3) -> list[list[int]]:
    """For each request as many page ids as it needs, none twice, from a pool with `spare` pages more."""
    pool = rng.shuffled(range(sum(counts) + spare))
    starts = [0, *accumulate(counts)]
    return [pool[start : start + n] for start, n in zip(starts, counts, strict=False)]


def page_table(
    rng: Rng, seq_lens: Sequence[int], page_size: int, rows: Sequence[int] | None = None
) -> Tensor:
    """A page table by token position, int32 [max(rows) + 1, width]: row `rows[i]` holds request i's positions in the
    pool, page by page. Rows nobody has, and what stands after a sequence's end, hold what an earlier request left."""
    order = list(range(len(seq_lens))) if rows is None else list(rows)
    width = max(-(-n // page_size) for n in seq_lens) + 1
    given = pages(rng, [width] * (max(order) + 1))
    return i32([[p * page_size + slot for p in row for slot in range(page_size)] for row in given])


def tensor(rng: Rng, shape: Sequence[int], dtype: str = "float32", scale: float = 1.0) -> Tensor:
    """Roughly normal numbers times `scale`, each a multiple of 1/64 before scaling: exact in float32, and close in half
    types."""
    import torch

    count = math.prod(shape)
    values = [round(x * 64) / 64 * scale for x in rng.floats(count)]
    return torch.tensor(values, dtype=getattr(torch, dtype)).reshape(tuple(shape))


def tokens(rng: Rng, count: int, vocabulary: int = 100) -> list[int]:
    """`count` token ids below `vocabulary`; few different ones, so that some come twice."""
    few = [rng.below(vocabulary) for _ in range(max(2, count // 2))]
    return [rng.choice(few) for _ in range(count)]
