"""The blocks of a decoder layer, as every architecture here builds them: attention, and an MLP or experts."""

from __future__ import annotations

import torch

from minisgl.layers.activation import silu_and_mul
from minisgl.layers.attention import AttentionLayer
from minisgl.layers.base import BaseOP
from minisgl.layers.linear import (
    LinearColParallelMerged,
    LinearOProj,
    LinearQKVMerged,
    LinearReplicated,
    LinearRowParallel,
)
from minisgl.layers.norm import RMSNorm
from minisgl.models.config import ModelConfig, MoEConfig
from minisgl.utils.registry import Entry, Registry

# Only models with experts need that layer, and the course writes it late.
_EXPERTS = Registry("layer", {"experts": Entry("minisgl.layers.moe:ExpertsLayer", 20)})


class RopeAttn(BaseOP):
    """[tokens, hidden] -> [tokens, hidden]: project, attend with rotary positions, project back."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        self.qkv_proj = LinearQKVMerged(
            config.hidden_size, config.head_dim, config.num_qo_heads, config.num_kv_heads, config.qkv_bias
        )
        self.o_proj = LinearOProj(config.num_qo_heads * config.head_dim, config.hidden_size, config.o_bias)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps) if config.qk_norm else None
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps) if config.qk_norm else None
        self._attn = AttentionLayer(config, layer_id, self.q_norm, self.k_norm)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.o_proj.forward(self._attn.forward(self.qkv_proj.forward(x)))


class GatedMLP(BaseOP):
    """[tokens, hidden] -> [tokens, hidden] through silu(gate) * up."""

    def __init__(self, config: ModelConfig) -> None:
        width = config.intermediate_size
        self.gate_up_proj = LinearColParallelMerged(config.hidden_size, [width, width])
        self.down_proj = LinearRowParallel(width, config.hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj.forward(silu_and_mul(self.gate_up_proj.forward(x)))


class SparseMLP(BaseOP):
    """[tokens, hidden] -> [tokens, hidden] through the few experts that `gate`, the router, picks for each
    token. Every rank routes for itself: the router's matrix is small, and the same everywhere."""

    def __init__(self, config: ModelConfig, moe: MoEConfig) -> None:
        self.gate = LinearReplicated(config.hidden_size, moe.num_experts)
        self.experts: BaseOP = _EXPERTS.load("experts")(moe, config.hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.experts.forward(x, self.gate.forward(x))
        return out


def create_mlp(config: ModelConfig, layer_id: int) -> BaseOP:
    """What stands behind attention in that layer: a gated MLP, or experts."""
    if config.moe is not None and config.has_experts(layer_id):
        return SparseMLP(config, config.moe)
    return GatedMLP(config)
