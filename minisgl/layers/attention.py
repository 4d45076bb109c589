"""The part of attention that is the same for every backend: split, norm the heads, rotate, attend."""

from __future__ import annotations

import torch

from minisgl.core import get_global_ctx
from minisgl.distributed.info import get_tp_info
from minisgl.layers.base import StateLessOP
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rotary import get_rope
from minisgl.models.config import ModelConfig
from minisgl.utils.misc import div_even, local_kv_heads


class AttentionLayer(StateLessOP):
    """qkv [tokens, (Hq + 2 Hkv) * D] -> [tokens, Hq * D], with this rank's heads.

    q_norm and k_norm, if the model has them, belong to the caller, under whose names their weights are
    loaded.
    """

    def __init__(
        self,
        config: ModelConfig,
        layer_id: int,
        q_norm: RMSNorm | None = None,
        k_norm: RMSNorm | None = None,
    ) -> None:
        tp_size = get_tp_info().size
        self.layer_id = layer_id
        self.head_dim = config.head_dim
        self.qo_heads = div_even(config.num_qo_heads, tp_size, what="number of query heads")
        self.kv_heads = local_kv_heads(config.num_kv_heads, tp_size)
        self.rotary = get_rope(config.rotary_config)
        self.q_norm = q_norm
        self.k_norm = k_norm

    def forward(self, qkv: torch.Tensor) -> torch.Tensor:
        ctx = get_global_ctx()
        batch = ctx.batch
        heads = qkv.view(-1, self.qo_heads + 2 * self.kv_heads, self.head_dim)
        q, k, v = heads.split([self.qo_heads, self.kv_heads, self.kv_heads], dim=1)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm.forward(q), self.k_norm.forward(k)
        q, k = self.rotary.forward(batch.positions, q, k)
        return ctx.attn_backend.forward(q, k, v, self.layer_id, batch).flatten(1)
