"""How tensor-parallel ranks add up and gather what each of them computed.

A thin layer over torch.distributed: gloo between CPU processes, NCCL between GPUs. Layers call it without
asking how many ranks there are; with one rank every operation returns its argument untouched.
"""

from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist

from minisgl.distributed.info import get_tp_info

# The same operation; torch 2.13 renamed it and warns about the old name.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class DistributedCommunicator:
    """Collective operations of the tensor-parallel group.

    Invariant: every rank calls the same operations in the same order with the same shapes; a rank that does
    not come makes the others fail at the group's timeout.
    """

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """Sum of x over the ranks, in place; any shape. Returns x."""
        if get_tp_info().size > 1:
            dist.all_reduce(x, op=dist.ReduceOp.SUM)
        return x

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """[n, ...] of each rank -> [size * n, ...], in the order of the ranks."""
        size = get_tp_info().size
        if size == 1:
            return x
        out = x.new_empty((size * x.shape[0], *x.shape[1:]))
        _all_gather(out, x.contiguous())
        return out

    def all_reduce_min(self, value: int) -> int:
        """The smallest of the ranks' values: how ranks agree on a number that each has its own idea of."""
        if get_tp_info().size == 1:
            return value
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        agreed = torch.tensor(value, dtype=torch.int64, device=device)
        dist.all_reduce(agreed, op=dist.ReduceOp.MIN)
        return int(agreed)


def init_process_group(init_method: str, device: torch.device, timeout_s: float) -> None:
    """Meet the other ranks at `init_method` (an address such as tcp://127.0.0.1:2333).

    Does nothing with one rank. Raises torch.distributed.DistError after `timeout_s` seconds without them.
    """
    info = get_tp_info()
    if info.size == 1:
        return
    dist.init_process_group(
        backend="nccl" if device.type == "cuda" else "gloo",
        init_method=init_method,
        rank=info.rank,
        world_size=info.size,
        timeout=timedelta(seconds=timeout_s),
    )


def destroy_process_group() -> None:
    """Leave the group, if there is one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
