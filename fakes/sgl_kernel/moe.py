"""Routing tokens to experts (`sgl_kernel/moe.py` of sglang-kernel 0.4.6), computed on the CPU."""

from __future__ import annotations

import torch
from fake_kernels.checks_moe import check_alignment, check_routing
from fake_kernels.checks_rows import acted, require_numbers
from fake_kernels.findings import require_context
from fake_kernels.memory import memory
from fake_kernels.moe import aligned, routed


def moe_align_block_size(
    topk_ids: torch.Tensor,
    num_experts: int,
    block_size: int,
    sorted_token_ids: torch.Tensor,
    experts_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
    cumsum_buffer: torch.Tensor,
    pad_sorted_token_ids: bool = False,
    ignore_invalid_expert: bool = False,
) -> None:
    """Sort the (token, expert) pairs of topk_ids [tokens, top_k] by expert, each expert's padded to whole blocks.

    num_experts: experts + 1, because the first bucket is for id -1 (an expert elsewhere), whose blocks get expert
    -1; ignore_invalid_expert leaves negative ids out. Written in place, int32: sorted_token_ids (numbers of pairs;
    padding is only filled, with the number of pairs, if pad_sorted_token_ids), experts_ids (of each block),
    num_tokens_post_pad [1] (places in use). cumsum_buffer [num_experts + 1] is the kernel's own and is not written
    here. Pairs of an expert are in order; on a GPU a large batch's are in any.
    """
    require_context()
    buffers = {
        "sorted_token_ids": sorted_token_ids,
        "experts_ids": experts_ids,
        "num_tokens_post_pad": num_tokens_post_pad,
        "cumsum_buffer": cumsum_buffer,
    }
    found = check_alignment(topk_ids, num_experts, block_size, buffers, ignore_invalid_expert)
    acted(found)
    blocks = aligned(topk_ids, num_experts, block_size, ignore_invalid_expert)
    if pad_sorted_token_ids:
        sorted_token_ids.fill_(topk_ids.numel())
    places = (blocks.pairs >= 0).nonzero().flatten()
    _put(sorted_token_ids, places, blocks.pairs[places])
    _put(experts_ids, torch.arange(len(blocks.experts)), blocks.experts)
    _put(num_tokens_post_pad, torch.zeros(1, dtype=torch.int64), torch.tensor([len(blocks.pairs)]))


def _put(buffer: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> None:
    """buffer[places] = values, also behind the buffer's end, as far as its memory goes."""
    held = memory(buffer, int(places.max()) + 1) if len(places) else buffer
    inside = places < len(held)
    held[places[inside]] = values[inside].to(buffer.dtype)


def topk_softmax(
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    gating_output: torch.Tensor,
    renormalize: bool = False,
    moe_softcapping: float = 0.0,
    correction_bias: torch.Tensor | None = None,
) -> None:
    """The top_k most probable experts of each token under softmax(gating_output), most probable first.

    gating_output: [tokens, experts], float32, float16 or bfloat16. Written in place: topk_weights float32 and
    topk_ids int32, [tokens, top_k]. renormalize: weights scaled to sum 1. moe_softcapping c (0: none) makes the
    logits c * tanh(logits / c); correction_bias, float32 [experts], is added after that. Of equal experts the lower
    id comes first (so the kernel for 2^n experts; for other numbers it is not specified).
    """
    require_numbers(moe_softcapping=moe_softcapping, renormalize=renormalize)
    acted(check_routing(topk_weights, topk_ids, gating_output, correction_bias))
    top_k = topk_weights.shape[1]
    weights, ids = routed(gating_output, top_k, renormalize, moe_softcapping, correction_bias)
    topk_weights.copy_(weights)
    topk_ids.copy_(ids)


__all__ = ["moe_align_block_size", "topk_softmax"]
