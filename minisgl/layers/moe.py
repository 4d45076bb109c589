"""Experts of one layer, stacked: their weights, cut for tensor parallelism, and the way to the backend.

Every rank has its share of each expert's width (not a share of the experts), so tokens need not travel, and
the ranks' results are summed once, as behind any gated MLP.
"""

from __future__ import annotations

import torch

from minisgl.core import get_global_ctx
from minisgl.distributed.impl import DistributedCommunicator
from minisgl.distributed.info import get_tp_info
from minisgl.layers.base import BaseOP
from minisgl.models.config import MoEConfig
from minisgl.utils.misc import div_even


class ExpertsLayer(BaseOP):
    """[tokens, hidden] and router logits [tokens, E] -> [tokens, hidden].

    gate_up_proj: [E, 2 n, hidden], each expert's gate above its up; down_proj: [E, hidden, n], with n this
    rank's share of an expert's width.
    """

    def __init__(self, moe: MoEConfig, hidden_size: int) -> None:
        width = div_even(moe.intermediate_size, get_tp_info().size, what="width of an expert")
        self._moe = moe
        self._communicator = DistributedCommunicator()
        self.gate_up_proj = torch.empty(moe.num_experts, 2 * width, hidden_size)
        self.down_proj = torch.empty(moe.num_experts, hidden_size, width)

    def forward(self, x: torch.Tensor, router_logits: torch.Tensor) -> torch.Tensor:
        out = get_global_ctx().moe_backend.forward(
            x,
            router_logits,
            self.gate_up_proj,
            self.down_proj,
            self._moe.experts_per_token,
            self._moe.renormalize,
        )
        return self._communicator.all_reduce(out)
