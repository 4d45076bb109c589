"""What can be wrong with routing and with sorting pairs by expert: the findings, in the library's order where it looks."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fake_kernels import mistakes_moe as m
from fake_kernels.checks_rows import tensor_of
from fake_kernels.checks_values import check_numbers
from fake_kernels.findings import Finding
from fake_kernels.mistakes_rows import STRIDES_IGNORED
from fake_kernels.moe import aligned
from fake_kernels.outcomes import GARBAGE, UNMEASURED

_NEAR_BUCKETS = 8
"""How far outside the buckets an id was seen to count in memory of the same block; farther was not measured."""

_SCALARS = {
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float64: "Double",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


def check_routing(
    weights: torch.Tensor, ids: torch.Tensor, gating: torch.Tensor, bias: torch.Tensor | None
) -> Iterator[Finding]:
    """What topk_softmax refuses, in its order, and what it doesn't look at."""
    named = (
        ("gating_output", gating),
        ("topk_weights", weights),
        ("topk_ids", ids),
        ("correction_bias", bias),
    )
    for name, given in named[: 3 if bias is None else 4]:
        yield from tensor_of(name, given)
    if gating.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        params = {"got": str(gating.dtype), "expected": "float32/float16/bfloat16"}
        yield Finding(m.GATING_TYPE, "gating_output", params)
    told = (("gating_output", gating, "num_experts"), ("topk_weights", weights, "topk"))
    for name, given, second in (*told, ("topk_indices", ids, "topk")):
        if given.ndim != 2:
            yield _refused(name, given, f"{name} must be 2D tensor [num_tokens, {second}]")
    tokens, experts = gating.shape
    if weights.shape[0] != tokens:
        message = "First dimension of topk_weights must match num_tokens in gating_output"
        yield _refused("topk_weights", weights, message)
    if ids.shape[0] != tokens:
        message = "First dimension of topk_indices must match num_tokens in gating_output"
        yield _refused("topk_ids", ids, message)
    if ids.shape[1] != weights.shape[1]:
        message = "Second dimension of topk_indices must match topk in topk_weights"
        yield _refused("topk_ids", ids, message)
    if weights.shape[1] > experts:
        yield _refused("topk_weights", weights, "topk must be less than or equal to num_experts")
    if tokens == 0:
        return
    if weights.shape[1] == 0:
        yield _refused("topk_weights", weights, "topk must be greater than 0")
    if bias is not None:
        if bias.ndim != 1:
            yield _refused("correction_bias", bias, "correction_bias must be 1D tensor [num_experts]")
        if len(bias) != experts:
            yield _refused("correction_bias", bias, "correction_bias size must match num_experts")
        if bias.dtype != torch.float32:
            message = f"correction_bias must be float32, got {_SCALARS.get(bias.dtype, bias.dtype)}"
            yield _refused("correction_bias", bias, message)
    for name, given, wanted in (("topk_weights", weights, torch.float32), ("topk_ids", ids, torch.int32)):
        if given.dtype != wanted:
            scalars = {"expected_scalar": _SCALARS[wanted], "got_scalar": _SCALARS.get(given.dtype, "?")}
            params = {"got": str(given.dtype), "expected": str(wanted)} | scalars
            yield Finding(m.OUTPUT_TYPE, name, params)
    for name, given in (("topk_weights", weights), ("topk_ids", ids), ("gating_output", gating)):
        if not given.is_contiguous():
            yield Finding(STRIDES_IGNORED, name, {"stride": list(given.stride())}, UNMEASURED)
    for row in gating.isnan().any(dim=-1).nonzero().flatten().tolist()[:1]:
        yield Finding(m.NAN, "gating_output", {"position": row})


def check_alignment(
    topk_ids: torch.Tensor,
    num_experts: int,
    block_size: int,
    buffers: dict[str, torch.Tensor],
    ignore_invalid: bool,
) -> Iterator[Finding]:
    """What can be wrong with the ids and buffers of moe_align_block_size, which checks none of it."""
    yield from check_numbers({"num_experts": num_experts, "block_size": block_size})
    for name, value, least in (("num_experts", num_experts, 2), ("block_size", block_size, 1)):
        if value < least:
            yield Finding(m.NUMBER_WRONG, name, {"value": value, "least": least})
    for name, given in {"topk_ids": topk_ids, **buffers}.items():
        yield from tensor_of(name, given)
        wanted = (torch.int32, torch.int64) if name == "topk_ids" else (torch.int32,)
        if given.dtype not in wanted:
            expected = "/".join(str(one) for one in wanted)
            yield Finding(m.INTEGER_BUFFER, name, {"got": str(given.dtype), "expected": expected})
        if not given.is_contiguous():
            yield Finding(STRIDES_IGNORED, name, {"stride": list(given.stride())}, UNMEASURED)
    flat = topk_ids.flatten()
    lowest = torch.iinfo(flat.dtype).min if ignore_invalid else -1
    for at in ((flat < lowest) | (flat > num_experts - 2)).nonzero().flatten().tolist()[:1]:
        place = {"position": at, "value": int(flat[at]), "given": num_experts}
        place |= {"lowest": -1, "last": num_experts - 2}
        near = int(flat.abs().max()) < num_experts + _NEAR_BUCKETS
        yield Finding(m.EXPERT_OUT_OF_RANGE, "topk_ids", place, GARBAGE if near else UNMEASURED)
    blocks = aligned(topk_ids, num_experts, block_size, ignore_invalid)
    needed = {
        "sorted_token_ids": len(blocks.pairs),
        "experts_ids": len(blocks.experts),
        "num_tokens_post_pad": 1,
        "cumsum_buffer": num_experts + 1,
    }
    for name, entries in needed.items():
        if buffers[name].numel() < entries:
            params = {"got": buffers[name].numel(), "needed": entries}
            outcome = GARBAGE if name in ("sorted_token_ids", "experts_ids") else UNMEASURED
            yield Finding(m.BUFFER_TOO_SMALL, name, params, outcome)


def _refused(name: str, given: torch.Tensor, message: str) -> Finding:
    named = "topk_ids" if name == "topk_indices" else name
    return Finding(m.REFUSED, named, {"shape": list(given.shape), "message": message})
