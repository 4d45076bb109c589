"""Where a scheduler's messages come from and where its results go.

Every tensor-parallel rank runs the whole scheduler, and they agree without asking one another because they see
the same messages at the same step. Only the first rank is connected to the outside: at each step it passes on
what came, nothing included, as one frame to the others. So a step of theirs begins with exactly one frame, and
which step a message belongs to is never a matter of timing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from minisgl.message.backend import BACKEND_TYPES, BaseBackendMsg, BatchBackendMsg
from minisgl.message.tokenizer import BatchTokenizerMsg, DetokenizeMsg, SchedulerStatusMsg
from minisgl.message.utils import each, one_or_batch, pack, reader
from minisgl.scheduler.config import SchedulerConfig
from minisgl.utils.mp import ZmqPubQueue, ZmqPullQueue, ZmqPushQueue, ZmqSubQueue

# An idle scheduler sleeps in the kernel until a message comes, and looks up so often even without one: the other
# ranks take silence of more than this, and of the group's timeout on top, for the first rank's death.
IDLE_S = 5.0

Result = DetokenizeMsg | SchedulerStatusMsg


class SchedulerIOMixin:
    """The two calls through which a scheduler meets the world. Without a socket_folder in the configuration
    both are for a subclass to write.

    Invariants
    - every rank's n-th `receive_msg` returns the same messages in the same order;
    - results go out once, from the first rank.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        """TimeoutError if the other ranks do not listen within the distributed timeout."""
        self.config = config
        self._inlet: ZmqPullQueue[BaseBackendMsg] | None = None
        self._outlets: list[ZmqPushQueue[object]] = []
        self._to_ranks: ZmqPubQueue[BatchBackendMsg] | None = None
        self._from_first: ZmqSubQueue[BatchBackendMsg] | None = None
        if config.socket_folder is None:
            return
        rank, size = config.tp_info.rank, config.tp_info.size
        read = reader(BACKEND_TYPES)
        if rank > 0:
            self._from_first = ZmqSubQueue(config.address("broadcast"), False, read)
            return
        self._inlet = ZmqPullQueue(config.address("backend"), True, read)
        self._outlets = [ZmqPushQueue(address, False, pack) for address in config.tokenizer_addresses]
        if size > 1:
            self._to_ranks = ZmqPubQueue(config.address("broadcast"), True, pack)
            self._to_ranks.wait_for_subscribers(size - 1, config.distributed_timeout)

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        """Messages that have come since the last call, in order.

        With `blocking`, sleeps until one comes; for IDLE_S at most, so the list may be empty all the same.
        TimeoutError on another rank than the first if the first is silent.
        """
        if self._from_first is not None:
            return list(self._from_first.get(IDLE_S + self.config.distributed_timeout).data)
        if self._inlet is None:
            raise NotImplementedError(f"{type(self).__name__} has no sockets and does not say where to read")
        messages = [
            one
            for message in self._inlet.drain(IDLE_S if blocking else 0.0)
            for one in each(message, BatchBackendMsg)
        ]
        if self._to_ranks is not None:
            self._to_ranks.put(BatchBackendMsg(messages))
        return messages

    def send_result(self, reply: Sequence[Result]) -> None:
        """Pass on what a step brought, in the batch's order, to the tokenizers of the requests."""
        if self._from_first is not None:
            return
        if not self._outlets:
            raise NotImplementedError(f"{type(self).__name__} has no sockets and does not say where to write")
        shares: defaultdict[int, list[Result]] = defaultdict(list)
        for message in reply:
            shares[message.uid % len(self._outlets)].append(message)
        for index, share in shares.items():
            self._outlets[index].put(one_or_batch(share, BatchTokenizerMsg))

    def close_io(self) -> None:
        """Give up the sockets."""
        for queue in (self._inlet, self._to_ranks, self._from_first, *self._outlets):
            if queue is not None:
                queue.close()
