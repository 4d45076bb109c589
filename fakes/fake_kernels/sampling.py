"""Which tokens a filter keeps, and drawing one of them.

A token with probability x is kept by top-k if fewer than k tokens are more probable, by top-p if those that are
more probable add up to less than p, by min-p if x >= min_p * largest. So tokens that tie with the last one kept
are kept too (sampling.cuh, TopKSamplingFromProbKernel and its siblings, which reject until such a token comes;
topk.cuh, RadixTopKRenormProbKernel_MultiCTA). Sums are made in float64; where a sum meets p within float32's
rounding the kernels may decide otherwise.
"""

from __future__ import annotations

import torch

FAST_TOP_K = 256
FAST_VOCABULARY = 65536
"""At an int top_k up to this, and a vocabulary from this on, top_k_first takes exactly k tokens, breaking ties
(sampling.py, _top_k_first_fast_path_applicable)."""


def top_k_keeps(rows: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """bool [B, V]: the k largest of each row and what ties with the k-th. k: integers [B], at least 1."""
    ordered = rows.sort(dim=-1, descending=True).values
    last = ordered.gather(1, (k.long().clamp(max=rows.shape[1]) - 1).unsqueeze(1))
    return rows >= last


def exactly_top_k(rows: torch.Tensor, k: int) -> torch.Tensor:
    """bool [B, V]: the k largest of each row, earlier tokens first among equals."""
    chosen = rows.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    return torch.zeros_like(rows, dtype=torch.bool).scatter_(1, chosen, True)


def top_p_keeps(probs: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """bool [B, V]: the tokens whose more probable ones add up to less than p. probs float64 [B, V]; p [B]."""
    ordered, order = probs.sort(dim=-1, descending=True)
    sums = ordered.cumsum(dim=-1)
    before = sums - ordered
    # Equal tokens have the same more probable ones: those before the first of them.
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[:, 1:] = ordered[:, 1:] < ordered[:, :-1]
    place = torch.arange(probs.shape[1]).expand_as(order)
    first = torch.where(starts, place, 0).cummax(dim=-1).values
    kept = before.gather(1, first) < p.double().unsqueeze(1)
    return torch.zeros_like(kept).scatter_(1, order, kept)


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
