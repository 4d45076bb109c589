"""Queues between the engine's processes, over ZMQ sockets.

A push queue has one reader at its other end, and keeps order; a pub queue has many, who all see the same frames
in the same order. Which side creates the address (binds) and which connects is free, and so is who comes first.
Every wait has a deadline: a process whose partner is gone must find out.

Addresses are ipc:// paths in a folder that only the engine's user can enter, or tcp://127.0.0.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import zmq
import zmq.asyncio

from minisgl.message.utils import MAX_FRAME_BYTES

T = TypeVar("T")
Encode = Callable[[T], bytes]
Decode = Callable[[bytes], T]

# Frames that may wait for a reader. A sender that finds so many waits, up to its deadline.
HIGH_WATER = 100_000
SEND_TIMEOUT_S = 30.0


class _Queue:
    """Invariant: the socket is used by the thread (or event loop) that made the queue, and by no other."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], kind: int, address: str, create: bool
    ) -> None:
        self.address = address
        self._socket = context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
        self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
        try:
            self._socket.bind(address) if create else self._socket.connect(address)
        except zmq.ZMQError as error:
            self._socket.close()
            raise OSError(f"{'creating' if create else 'connecting to'} {address}: {error}") from error

    def close(self) -> None:
        """Give the socket up, and with it frames that nobody has taken yet."""
        self._socket.close()


class ZmqPushQueue(_Queue, Generic[T]):
    def __init__(self, address: str, create: bool, encode: Encode[T]) -> None:
        super().__init__(zmq.Context.instance(), zmq.PUSH, address, create)
        self._encode = encode

    def put(self, item: T, timeout_s: float = SEND_TIMEOUT_S) -> None:
        """Send, or leave with the socket until the reader is there; TimeoutError if HIGH_WATER frames wait
        already and none is taken in time."""
        _send(self._socket, self._encode(item), timeout_s, self.address)


class ZmqPullQueue(_Queue, Generic[T]):
    def __init__(self, address: str, create: bool, decode: Decode[T]) -> None:
        super().__init__(zmq.Context.instance(), zmq.PULL, address, create)
        self._decode = decode

    def get(self, timeout_s: float) -> T:
        """The next item; TimeoutError if none comes in time; ValueError, as `decode`, for a broken frame."""
        return self._decode(_receive(self._socket, timeout_s, self.address))

    def drain(self, timeout_s: float = 0.0) -> list[T]:
        """All that is there, up to a quarter of a frame's limit in bytes; if nothing is, waits for a first item,
        and may return without any."""
        items: list[T] = []
        size = 0
        while size < MAX_FRAME_BYTES // 4 and self._socket.poll(0 if items else int(timeout_s * 1000)):
            frame = self._socket.recv(zmq.NOBLOCK)
            size += len(frame)
            items.append(self._decode(frame))
        return items


class ZmqPubQueue(_Queue, Generic[T]):
    """Sends every item to all subscribers.

    A publisher drops what is sent before somebody listens, without a word, and ranks that have not seen the same
    messages would compute different batches. So it counts the subscriptions first; and when a subscriber's queue
    is full it waits instead of dropping.
    """

    def __init__(self, address: str, create: bool, encode: Encode[T]) -> None:
        super().__init__(zmq.Context.instance(), zmq.XPUB, address, create)
        self._socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # every subscription is told, not just the first
        self._socket.setsockopt(zmq.XPUB_NODROP, 1)
        self._encode = encode

    def wait_for_subscribers(self, number: int, timeout_s: float) -> None:
        """Return when `number` subscribers listen; TimeoutError that says how many there are if they do not
        come in time."""
        deadline = time.monotonic() + timeout_s
        have = 0
        while have < number:
            if not self._socket.poll(max(0, int((deadline - time.monotonic()) * 1000))):
                raise TimeoutError(
                    f"{have} of {number} subscribers listen on {self.address} after {timeout_s} s"
                )
            joined = self._socket.recv(zmq.NOBLOCK)[:1] == b"\x01"
            have += 1 if joined else -1

    def put(self, item: T, timeout_s: float = SEND_TIMEOUT_S) -> None:
        """Send to everybody; TimeoutError if a subscriber takes nothing for so long and its queue is full."""
        _send(self._socket, self._encode(item), timeout_s, self.address)


class ZmqSubQueue(_Queue, Generic[T]):
    def __init__(self, address: str, create: bool, decode: Decode[T]) -> None:
        super().__init__(zmq.Context.instance(), zmq.SUB, address, create)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._decode = decode

    def get(self, timeout_s: float) -> T:
        """The next item, as every other subscriber sees it; TimeoutError if none comes in time."""
        return self._decode(_receive(self._socket, timeout_s, self.address))


class ZmqAsyncPullQueue(_Queue, Generic[T]):
    """`ZmqPullQueue` for an event loop, which is the one that first waits on it. There is no such push queue:
    a put hands the frame to ZMQ's own thread and does not wait."""

    def __init__(self, address: str, create: bool, decode: Decode[T]) -> None:
        super().__init__(zmq.asyncio.Context.instance(), zmq.PULL, address, create)
        self._decode = decode

    async def get(self, timeout_s: float) -> T:
        """As `ZmqPullQueue.get`. Cancelled while it waits, it has taken nothing."""
        if not await self._socket.poll(int(timeout_s * 1000)):
            raise TimeoutError(f"nothing came on {self.address} for {timeout_s} s")
        return self._decode(await self._socket.recv(zmq.NOBLOCK))


def let_last_words_out(timeout_s: float) -> None:
    """Close all of this process's queues, giving frames that are on their way so long to leave. For a process that
    is about to end: what ZMQ's thread still holds then is lost."""
    zmq.Context.instance().destroy(linger=int(timeout_s * 1000))


def _send(socket: zmq.Socket[bytes], frame: bytes, timeout_s: float, address: str) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return socket.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            left = deadline - time.monotonic()
            # An XPUB socket is always ready to poll(); it is asked again after a moment.
            if left <= 0:
                raise TimeoutError(f"nobody takes anything from {address}; waited {timeout_s} s") from None
            socket.poll(min(int(left * 1000) + 1, 1000), zmq.POLLOUT)
            time.sleep(0.001)


def _receive(socket: zmq.Socket[bytes], timeout_s: float, address: str) -> bytes:
    if not socket.poll(int(timeout_s * 1000)):
        raise TimeoutError(f"nothing came on {address} for {timeout_s} s")
    return socket.recv(zmq.NOBLOCK)
