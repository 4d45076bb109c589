"""This process's place among the tensor-parallel ranks.

Layers ask for it while they are built (how many heads are mine?), long before any communication exists, so it
is a plain value of the process. It is set once: a layer that was cut for rank 0 of 2 must not find itself in
a process that later calls itself rank 0 of 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DistributedInfo:
    """Rank `rank` of `size`; ValueError unless 0 <= rank < size."""

    rank: int
    size: int

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank {self.rank} of {self.size}: ranks go from 0 to size - 1")

    @property
    def is_primary(self) -> bool:
        """True on the one rank that talks to the outside."""
        return self.rank == 0


_TP_INFO: DistributedInfo | None = None


def set_tp_info(info: DistributedInfo) -> None:
    """Say who this process is; RuntimeError if it has been said already."""
    global _TP_INFO
    if _TP_INFO is not None:
        raise RuntimeError(
            f"this process is rank {_TP_INFO.rank} of {_TP_INFO.size} already: reset_tp_info() first"
        )
    _TP_INFO = info


def get_tp_info() -> DistributedInfo:
    """Who this process is; RuntimeError if nobody has said so."""
    if _TP_INFO is None:
        raise RuntimeError(
            "the rank is not known yet: call set_tp_info(DistributedInfo(0, 1)) before building layers"
        )
    return _TP_INFO


def try_get_tp_info() -> DistributedInfo | None:
    """Who this process is, or None."""
    return _TP_INFO


def reset_tp_info() -> None:
    """Forget it, so that the next engine of this process can say it anew."""
    global _TP_INFO
    _TP_INFO = None
