"""Which tokens a filter keeps, and drawing one of them.

A token with probability x is kept by top-k if fewer than k tokens are more probable, by top-p if those that are
more probable add up to less than p, by min-p if x >= min_p * largest. So tokens that tie with the last one kept
are kept too (sampling.cuh, TopKSamplingFromProbKernel and its siblings, which reject until such a token comes;
topk.cuh, RadixTopKRenormProbKernel_MultiCTA). Sums are made in float64; where a sum meets p within float32's
rounding the kernels may decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

FAST_TOP_K = 256
FAST_VOCABULARY = 65536
"""At an int top_k up to this, and a vocabulary from this on, top_k_first takes exactly k tokens, breaking ties
(sampling.py, _top_k_first_fast_path_applicable)."""


def top_k_keeps(rows: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """bool [B, V]: the k largest of each row and what ties with the k-th. k: integers [B]; 0 keeps nothing."""
    places = k.long().clamp(1, rows.shape[1])
    largest, _ = _descending(rows, int(places.max()))
    return (rows >= largest.gather(1, (places - 1).unsqueeze(1))) & (k > 0).unsqueeze(1)


def exactly_top_k(rows: torch.Tensor, k: int) -> torch.Tensor:
    """bool [B, V]: the k largest of each row, earlier tokens first among equals."""
    last = rows.topk(k, dim=-1).values[:, -1:]
    above, level = rows > last, rows == last
    room = k - above.sum(dim=-1, keepdim=True)
    return above | (level & (level.cumsum(dim=-1) <= room))


def top_p_keeps(probs: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """bool [B, V]: the tokens whose more probable ones add up to less than p, apart from those of probability 0.

    probs: float64 [B, V]. p: [B].
    """
    width = max(1, int((probs > 0).sum(dim=-1).max()))
    ordered, order = _descending(probs, width)
    before = ordered.cumsum(dim=-1) - ordered
    # Equal tokens have the same more probable ones: those before the first of them.
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[:, 1:] = ordered[:, 1:] < ordered[:, :-1]
    first = torch.where(starts, torch.arange(width), 0).cummax(dim=-1).values
    kept = (before.gather(1, first) < p.double().unsqueeze(1)) & (ordered > 0)
    return torch.zeros_like(probs, dtype=torch.bool).scatter_(1, order, kept)


def _descending(rows: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `width` largest of each row, largest first, and where they stand."""
    if 8 * width > rows.shape[1]:
        ordered, order = rows.sort(dim=-1, descending=True)
        return ordered[:, :width], order[:, :width]
    return rows.topk(width, dim=-1)


def min_p_keeps(probs: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    """bool [B, V]: the tokens with at least min_p times the largest probability, compared in float32."""
    bound = probs.float().amax(dim=-1) * min_p.float()
    return probs.float() >= bound.unsqueeze(1)


def renormalised(probs: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """float64 [B, V]: the kept probabilities, scaled to sum 1; others 0. A row that keeps nothing is 0."""
    held = probs.double().masked_fill(~kept, 0.0)
    total = held.sum(dim=-1, keepdim=True)
    return held / total.masked_fill(total == 0, 1.0)


def draw(weights: torch.Tensor, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A token of each row with probability proportional to its weight: int64 [B], and bool [B], whether there was
    any to choose (if not: token 0, like the kernels).

    weights: float64 [B, V], not negative. uniform: float64 [B] in (0, 1]. A token of weight 0 is never drawn.
    """
    sums = weights.cumsum(dim=-1)
    total = sums[:, -1:]
    beyond = sums > uniform.unsqueeze(1) * total
    possible = weights > 0
    # At uniform == 1 no sum is beyond: the last possible token, as in the kernels.
    last = weights.shape[1] - 1 - possible.flip(-1).int().argmax(dim=-1)
    token = torch.where(beyond.any(dim=-1), beyond.int().argmax(dim=-1), last)
    valid = possible.any(dim=-1)
    return token.masked_fill(~valid, 0), valid


def draw_by_rejection(
    probs: torch.Tensor, numbers: Iterator[torch.Tensor], k: torch.Tensor | None, p: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the kernels draw, step by step (sampling.cuh): the same as `draw` of a distribution, and the thing itself of
    rows that are none. Tokens int64 [B], and whether there was any to choose.

    probs: float [B, V]. numbers: gives float64 [B] in (0, 1] as often as asked. k, p: [B], None for no such filter.
    A step walks along the entries above `low` until they add up to more than the number, or takes the last of them; the
    token counts if few enough, or little enough, lies above it.
    """
    rows = probs.double().nan_to_num(0.0, posinf=0.0)
    low, high, scale = rows.new_zeros(len(rows)), rows.new_ones(len(rows)), rows.new_ones(len(rows))
    tokens, valid, done = low.long(), low.bool(), low.bool()

    def passes(level: torch.Tensor) -> torch.Tensor:
        above = rows > level.unsqueeze(1)
        right = torch.ones_like(done) if k is None else above.sum(dim=-1) < k
        return right if p is None else right & ((rows * above).sum(dim=-1) < p)

    while not bool(done.all()):
        above = rows > low.unsqueeze(1)
        walked = (rows * above).cumsum(dim=-1) > (next(numbers) * scale).unsqueeze(1)
        reached = walked & above
        last = rows.shape[1] - 1 - above.flip(-1).int().argmax(dim=-1)
        token = torch.where(reached.any(dim=-1), reached.int().argmax(dim=-1), last)
        none = ~above.any(dim=-1)
        pivot = rows.gather(1, token.unsqueeze(1)).squeeze(1)
        middle = (pivot + high) / 2
        narrow = passes(middle)
        low, high = torch.where(narrow, pivot, middle), torch.where(narrow, middle, high)
        scale = (rows * (rows > low.unsqueeze(1))).sum(dim=-1)
        ends = ~done & (none | passes(pivot) | (low >= high))
        tokens = torch.where(ends & ~none, token, tokens)
        valid = torch.where(ends, ~none, valid)
        done = done | ends
    return tokens, valid
