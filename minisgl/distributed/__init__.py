"""Who this process is among the tensor-parallel ranks, and how the ranks add up their partial results."""

from minisgl.distributed.impl import DistributedCommunicator, destroy_process_group, init_process_group
from minisgl.distributed.info import DistributedInfo, get_tp_info, reset_tp_info, set_tp_info, try_get_tp_info

__all__ = [
    "DistributedCommunicator",
    "DistributedInfo",
    "destroy_process_group",
    "get_tp_info",
    "init_process_group",
    "reset_tp_info",
    "set_tp_info",
    "try_get_tp_info",
]
