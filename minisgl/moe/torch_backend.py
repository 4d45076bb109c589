"""The reference: one expert after another, each on the tokens that chose it.

It can be read, and it pays for that: two small matrix products for every expert in use, and it has to ask the
device which experts those are before it can issue them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.layers.activation import silu_and_mul
from minisgl.moe.base import BaseMoEBackend, route


class TorchMoE(BaseMoEBackend):
    """Works on every device and dtype. Waits for the device, so it cannot be captured in a CUDA graph."""

    def forward(
        self,
        x: torch.Tensor,
        router_logits: torch.Tensor,
        gate_up: torch.Tensor,
        down: torch.Tensor,
        top_k: int,
        renormalize: bool,
    ) -> torch.Tensor:
        weights, experts = route(router_logits, top_k, renormalize)
        weights = weights.to(x.dtype)
        out = torch.zeros_like(x)
        for expert in experts.unique().tolist():
            tokens, choice = torch.where(experts == expert)
            answer = F.linear(silu_and_mul(F.linear(x[tokens], gate_up[expert])), down[expert])
            out.index_add_(0, tokens, answer * weights[tokens, choice].unsqueeze(1))
        return out
