"""Messages to the scheduler."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from minisgl.core import SamplingParams


class BaseBackendMsg:
    """Anything that the scheduler receives."""


@dataclass(frozen=True, eq=False)
class UserMsg(BaseBackendMsg):
    """A new request. `uid` is the sender's number for it, unused by any request that has not ended;
    input_ids: int32 [prompt tokens] on the CPU.

    It is answered by `DetokenizeMsg`s, the last of which, and no other, is `finished`.
    """

    uid: int
    input_ids: torch.Tensor
    sampling_params: SamplingParams


@dataclass(frozen=True)
class AbortBackendMsg(BaseBackendMsg):
    """Nobody wants the rest of this request. Ignored if it has ended already."""

    uid: int


@dataclass(frozen=True)
class AskStatusBackendMsg(BaseBackendMsg):
    """How are you? Answered by one SchedulerStatusMsg with the same `uid`."""

    uid: int


@dataclass(frozen=True, eq=False)
class BatchBackendMsg(BaseBackendMsg):
    """Several messages in one, in order."""

    data: list[BaseBackendMsg]


@dataclass(frozen=True)
class ExitMsg(BaseBackendMsg):
    """Stop: the scheduler leaves its loop."""


BACKEND_TYPES = (UserMsg, AbortBackendMsg, AskStatusBackendMsg, BatchBackendMsg, ExitMsg, SamplingParams)
"""All that may be in a frame for the scheduler."""
