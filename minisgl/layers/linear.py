"""Matrix products, cut for tensor parallelism.

A layer is cut by columns (each rank computes some of the outputs, nothing to add up) or by rows (each rank
has some of the inputs, and the partial outputs are summed over the ranks). A block that goes through a
column cut and then a row cut communicates once.

Weights are [outputs, inputs] of this rank, as checkpoints store them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minisgl.distributed.impl import DistributedCommunicator
from minisgl.distributed.info import get_tp_info
from minisgl.kernel import linear, pack_linear_weight
from minisgl.layers.base import BaseOP
from minisgl.utils.misc import div_even, local_kv_heads


class _Linear(BaseOP):
    """y = x W^T + b for x [..., local_in] -> [..., local_out]."""

    def __init__(self, local_in: int, local_out: int, has_bias: bool) -> None:
        self.weight = torch.empty(local_out, local_in)
        self.bias = torch.empty(local_out) if has_bias else None
        self._packed: torch.Tensor | None = None

    def finish_loading(self) -> None:
        self._packed = pack_linear_weight(self.weight)
        if self._packed is not None:
            self.weight = self.weight.to("meta")  # once in memory is enough

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self.weight, self._packed, self.bias)


class LinearReplicated(_Linear):
    """Every rank has the whole matrix."""

    def __init__(self, input_size: int, output_size: int, has_bias: bool = False) -> None:
        super().__init__(input_size, output_size, has_bias)


class LinearColParallelMerged(_Linear):
    """Several matrices with one input, each cut by columns; this rank's parts lie on top of each other.

    One product instead of several: the input is read once. The output is the parts side by side.
    """

    def __init__(self, input_size: int, output_sizes: Sequence[int], has_bias: bool = False) -> None:
        tp_size = get_tp_info().size
        local = [div_even(size, tp_size, what="output size") for size in output_sizes]
        super().__init__(input_size, sum(local), has_bias)


class LinearQKVMerged(_Linear):
    """The projections to queries, keys and values, cut by heads, in one matrix: q, then k, then v.

    Output: [tokens, (local query heads + 2 * local KV heads) * head_dim]. With more ranks than KV heads,
    several ranks compute the same KV head.
    """

    def __init__(
        self, hidden_size: int, head_dim: int, num_qo_heads: int, num_kv_heads: int, has_bias: bool
    ) -> None:
        tp_size = get_tp_info().size
        qo_heads = div_even(num_qo_heads, tp_size, what="number of query heads")
        kv_heads = local_kv_heads(num_kv_heads, tp_size)
        super().__init__(hidden_size, (qo_heads + 2 * kv_heads) * head_dim, has_bias)


class LinearRowParallel(_Linear):
    """Cut by rows: x is this rank's part of the inputs, the result is summed over the ranks.

    The bias is added once, after the sum.
    """

    def __init__(self, input_size: int, output_size: int, has_bias: bool = False) -> None:
        super().__init__(div_even(input_size, get_tp_info().size, what="input size"), output_size, has_bias)
        self._communicator = DistributedCommunicator()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if get_tp_info().size == 1:
            return linear(x, self.weight, self._packed, self.bias)
        y = self._communicator.all_reduce(linear(x, self.weight, self._packed))
        return y if self.bias is None else y + self.bias


class LinearOProj(LinearRowParallel):
    """From the heads back to the hidden size; its inputs are cut as the heads are."""
