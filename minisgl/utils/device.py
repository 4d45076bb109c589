"""The few places where a CUDA device and the CPU differ, as functions that work on both.

The engine is written for a GPU: copies that do not wait, a second stream, events between them. On the CPU
each of these has a plain meaning (there is nothing to wait for), so the same lines of the engine run there,
and no other file asks which device it is on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch


class Event(Protocol):
    """A mark in a stream's work. On the CPU, work is done when its call returns, so every mark has passed."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool: ...


class _PassedEvent:
    """The CPU's event."""

    def record(self) -> None:
        return

    def synchronize(self) -> None:
        return

    def query(self) -> bool:
        return True


def default_device(rank: int = 0) -> torch.device:
    """The CUDA device of a tensor-parallel rank if there are GPUs, otherwise the CPU.

    Rank 0 takes the current device, the others those after it; RuntimeError if there are not as many.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    index = torch.cuda.current_device() + rank
    if index >= torch.cuda.device_count():
        raise RuntimeError(
            f"rank {rank} needs GPU {index}, and there are {torch.cuda.device_count()}: give fewer ranks"
        )
    return torch.device("cuda", index)


def use_device(device: torch.device) -> None:
    """Make `device` the one that collective operations and kernels without a device of their own run on."""
    if device.type == "cuda":
        torch.cuda.set_device(device)


def pin(device: torch.device) -> bool:
    """Whether host tensors on their way to `device` should be page-locked.

    Only from page-locked memory is a `non_blocking` copy to a GPU really asynchronous; towards the CPU there
    is no copy, and page-locking needs a driver.
    """
    return device.type == "cuda"


def new_event(device: torch.device) -> Event:
    """An event of `device`; an event that was never recorded counts as passed."""
    return torch.cuda.Event() if device.type == "cuda" else _PassedEvent()


def new_stream(device: torch.device) -> torch.cuda.Stream | None:
    """A queue of work beside the current one; None on the CPU, which has just one."""
    return torch.cuda.Stream(device) if device.type == "cuda" else None


def use_stream(stream: torch.cuda.Stream | None) -> AbstractContextManager[object]:
    """Work issued inside the block goes to `stream`."""
    return torch.cuda.stream(stream) if stream is not None else nullcontext()


def wait_stream(waiting: torch.cuda.Stream | None, awaited: torch.cuda.Stream | None) -> None:
    """What `waiting` gets from now on starts after everything that `awaited` has so far."""
    if waiting is not None and awaited is not None:
        waiting.wait_stream(awaited)


class Graph(Protocol):
    """Work that was recorded once and is done again by one call, in the memory that it was recorded with."""

    def replay(self) -> None: ...


class _RecordedClosure:
    """The CPU's graph: the work as a function without arguments. Like a captured graph it sees only the
    tensors that it was recorded with, so whatever is to be new must have been copied into them."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()


def capture_graph(work: Callable[[], None], device: torch.device, pool: Graph | None = None) -> Graph:
    """Record `work`, which must have run before; it may run now. `pool`: a graph whose scratch memory may be
    used again, for the two are never replayed at the same time."""
    if device.type != "cuda":
        return _RecordedClosure(work)
    graph = torch.cuda.CUDAGraph()
    shared = pool.pool() if isinstance(pool, torch.cuda.CUDAGraph) else None
    # torch records on a stream of its own: recording on the default stream is not allowed.
    with torch.cuda.graph(graph, pool=shared):
        work()
    return graph


def synchronize(device: torch.device) -> None:
    """Return when everything issued to `device` is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_memory(device: torch.device) -> int:
    """Bytes that a new tensor on `device` could take now."""
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what the allocator keeps for reuse counts as free
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
