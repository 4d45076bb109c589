"""Routing for a mixture of experts: choosing each token's experts, and sorting (token, expert) pairs into blocks.

Facts from sglang's sources (`sgl-kernel/csrc/moe`: moe_topk_softmax_kernels.cu, moe_align_kernel.cu); sglang-kernel 0.4.6
ships them compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


def routed(
    gating: torch.Tensor, top_k: int, renormalize: bool, softcap: float, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights float32 and expert ids int32, [tokens, top_k] each, most probable first; among equals the lower id.

    gating: [tokens, experts]. Softcap and then bias (float32 [experts]) change the logits, the weights with them.
    renormalize: weights scaled to sum 1.
    """
    logits = gating.double()
    if softcap != 0:
        logits = softcap * torch.tanh(logits / softcap)
    if bias is not None:
        logits = logits + bias.double()
    probs = torch.softmax(logits, dim=-1)
    order = probs.float().sort(dim=-1, descending=True, stable=True).indices
    ids = order[:, :top_k]
    weights = probs.gather(1, ids)
    if renormalize:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    # A row with NaN has no probabilities: expert 0 wins every comparison, and its place holds -10000 from then on.
    lost = gating.isnan().any(dim=-1)
    weights[lost, :1], weights[lost, 1:], ids[lost] = math.nan, -10000.0, 0
    return weights.float(), ids.int()


@dataclass(frozen=True)
class Blocks:
    """Pairs sorted by expert, each expert's padded to whole blocks.

    pairs: int64 [padded], the number of the pair at each place, -1 for padding. experts: int32 [blocks].
    """

    pairs: torch.Tensor
    experts: torch.Tensor


def aligned(topk_ids: torch.Tensor, num_experts: int, block_size: int, ignore_invalid: bool) -> Blocks:
    """Bucket b holds expert b - 1; bucket 0, for id -1, comes first unless it is left out. Within an expert pairs
    are in order (a large batch's order on a GPU is chance). Ids outside the buckets go round, which is where those that
    were measured ended."""
    flat = topk_ids.flatten().long()
    taken = flat >= 0 if ignore_invalid else torch.ones_like(flat, dtype=torch.bool)
    flat = (flat + 1) % num_experts - 1
    counts = torch.bincount(flat[taken] + 1, minlength=num_experts)
    blocks = -(-counts // block_size)
    starts = torch.cat([counts.new_zeros(1), blocks.cumsum(0)]) * block_size
    pairs = torch.full((int(starts[-1]),), -1, dtype=torch.int64)
    order = torch.sort(flat[taken], stable=True).indices
    chosen = taken.nonzero().flatten()[order]
    rank = torch.arange(len(chosen)) - (counts.cumsum(0) - counts)[flat[chosen] + 1]
    pairs[starts[flat[chosen] + 1] + rank] = chosen
    experts = (torch.arange(num_experts) - 1).repeat_interleave(blocks).int()
    return Blocks(pairs, experts)
