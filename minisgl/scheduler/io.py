"""Where a scheduler's requests come from and where its tokens go."""

from __future__ import annotations

from abc import ABC, abstractmethod

from minisgl.message.backend import BaseBackendMsg
from minisgl.message.tokenizer import DetokenizeMsg
from minisgl.scheduler.config import SchedulerConfig


class SchedulerIOMixin(ABC):
    """The two calls through which a scheduler meets the world."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config

    @abstractmethod
    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        """Messages that have come since the last call, in order. With `blocking`, waits for one."""

    @abstractmethod
    def send_result(self, reply: list[DetokenizeMsg]) -> None:
        """Pass on what a step brought, in the batch's order."""
