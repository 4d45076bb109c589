"""Requests that have their whole prompt in the pool and generate one token a step."""

from __future__ import annotations

from collections.abc import Iterable

from minisgl.core import Batch, Req
from minisgl.scheduler.utils import pages_to_come


class DecodeManager:
    """Invariants
    - every running request can decode, and running requests are in order of arrival: a set's order would
      differ between the processes of a tensor-parallel group, and they must build the same batches;
    - pages for all that they may still generate are kept back (`reserved_pages`), so a step never finds the
      pool empty and no request has to be thrown out halfway.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._running: dict[Req, None] = {}

    @property
    def running(self) -> list[Req]:
        return list(self._running)

    def update(self, launched: Iterable[Req]) -> None:
        """After a launch: take in requests that go on to decode, drop those that have had their last step."""
        before = len(self._running)
        for req in launched:
            if req.can_decode:
                self._running[req] = None
            else:
                self._running.pop(req, None)
        if len(self._running) > before:
            self._running = dict.fromkeys(sorted(self._running, key=lambda req: req.arrival))

    def remove(self, req: Req) -> None:
        """Take a request out, if it is in."""
        self._running.pop(req, None)

    @property
    def reserved_pages(self) -> int:
        """Pages that running requests may still ask for."""
        return sum(pages_to_come(req, self._page_size) for req in self._running)

    def schedule_next_batch(self) -> Batch | None:
        """All running requests, one token each; None if there are none."""
        return Batch(list(self._running), "decode") if self._running else None
