"""Experts as two grouped matrix products: sort the tokens by expert, multiply, put them back.

Once the (token, expert) pairs of a batch are sorted by expert, each expert's tokens lie next to each other,
and all experts together are one grouped product: rows offsets[e-1] .. offsets[e] times matrix e.

torch has a kernel for that for bfloat16 on GPUs since Hopper; it reads the offsets on the device, and nothing
waits for the router. For everything else torch fetches the offsets and multiplies expert by expert, which a
CUDA graph cannot record; there, every pair gets its matrix by a gather.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minisgl.layers.activation import silu_and_mul
from minisgl.moe.base import BaseMoEBackend, Routing, route
from minisgl.utils.logger import init_logger

logger = init_logger(__name__)


class Grouping(NamedTuple):
    """tokens * top_k pairs, sorted by expert; within an expert, by token.

    order: int64 [pairs]: which pair stands at each place; pair p is choice p % top_k of token p // top_k.
    experts: int64 [pairs]: the expert of the pair at each place.
    offsets: int32 [num_experts]: where each expert's pairs end; an expert that nobody chose ends where the
    one before it does.
    """

    order: torch.Tensor
    experts: torch.Tensor
    offsets: torch.Tensor


def group_by_expert(experts: torch.Tensor, num_experts: int) -> Grouping:
    """Sort the pairs of `experts`, integers [tokens, top_k] in [0, num_experts)."""
    chosen, order = experts.flatten().sort(stable=True)
    every = torch.arange(num_experts, dtype=chosen.dtype, device=chosen.device)
    offsets = torch.searchsorted(chosen, every, right=True, out_int32=True)
    return Grouping(order, chosen, offsets)


def grouped_product(rows: torch.Tensor, matrices: torch.Tensor, grouping: Grouping) -> torch.Tensor:
    """rows [pairs, n], sorted by expert, times matrices [E, m, n]: each row with its expert's. [pairs, m]."""
    if rows.is_cuda and not _has_kernel(rows.device, rows.dtype) and torch.cuda.is_current_stream_capturing():
        # As many copies of matrices as there are pairs: only for recorded steps, whose batches are small.
        return torch.bmm(matrices[grouping.experts], rows.unsqueeze(2)).squeeze(2)
    return F.grouped_mm(rows, matrices.transpose(1, 2), offs=grouping.offsets)


@cache
def _has_kernel(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether torch multiplies groups there in one kernel."""
    return dtype == torch.bfloat16 and torch.cuda.get_device_capability(device) >= (9, 0)


class FusedMoE(BaseMoEBackend):
    """Its work has one shape for each number of tokens, so it can be captured in a CUDA graph."""

    def forward(
        self,
        x: torch.Tensor,
        router_logits: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
        top_k: int,
        renormalize: bool,
    ) -> torch.Tensor:
        weights, experts = _router(x.device.type)(router_logits, top_k, renormalize)
        grouping = group_by_expert(experts, len(gate_up))
        rows = x.index_select(0, grouping.order // top_k)
        inner = silu_and_mul(grouped_product(rows, gate_up, grouping))
        answers = grouped_product(inner, down, grouping)
        back = torch.empty_like(answers)
        back[grouping.order] = answers
        pairs = back.view(len(x), top_k, -1) * weights.to(x.dtype).unsqueeze(2)
        return pairs.sum(dim=1)


@cache
def _router(device_type: str) -> Callable[[torch.Tensor, int, bool], Routing]:
    """sgl_kernel's router (softmax, top-k and scaling in one kernel) on a GPU that has it; otherwise ours."""
    if device_type != "cuda":
        return route
    try:
        from sgl_kernel import topk_softmax
    except ImportError as error:
        logger.info("MoE: routing in torch, for sgl_kernel cannot be imported (%s)", error)
        return route

    def route_in_one_kernel(router_logits: torch.Tensor, top_k: int, renormalize: bool) -> Routing:
        shape = (len(router_logits), top_k)
        weights = torch.empty(shape, dtype=torch.float32, device=router_logits.device)
        experts = torch.empty(shape, dtype=torch.int32, device=router_logits.device)
        topk_softmax(weights, experts, router_logits.float(), renormalize)
        return Routing(weights, experts.long())

    return route_in_one_kernel
