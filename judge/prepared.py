"""Problem versions that are ready to be judged, and which of them are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from judge.packages import Package
from judge.references import References
from judge.sandbox.client import Stage
from judge.sandbox.local import LocalStage

KEEP_STAGES_MB = 1024.0
KEEP_PROBLEMS = 16  # each has up to ten processes waiting: a container's limit of processes is soon reached


@dataclass(eq=False)
class Prepared:
    """A problem version ready to be judged: its two stages, and how far its known mistakes have been run.

    Invariant: `users` counts those who judge with it, and what was let go is closed when the last of them is done: earlier
    would end their children.
    """

    package: Package
    stage: Stage | LocalStage
    references: References
    reference_mb: float
    static_frames: list[bytes]
    lock: threading.Lock = field(default_factory=threading.Lock)  # of those who run the known mistakes
    mistakes_known: bool = False
    counting: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    dropped: bool = False

    @property
    def memory_mb(self) -> float:
        """What its two stages hold for themselves."""
        return self.stage.memory_mb + self.reference_mb

    def enter(self) -> None:
        with self.counting:
            self.users += 1

    def leave(self) -> None:
        with self.counting:
            self.users -= 1
            over = self.dropped and not self.users
        if over:
            self.close()

    def let_go(self) -> None:
        """Close it, now or when nobody judges with it any more."""
        with self.counting:
            self.dropped = True
            over = not self.users
        if over:
            self.close()

    def close(self) -> None:
        self.stage.close()
        self.references.close()


class Shelf:
    """The problem versions in use. Thread-safe, and never locked for longer than a moment.

    Invariant: `held` has them by version, the least recently used first, and at most as many as the limits allow; the one
    used last is always kept.
    """

    def __init__(self, most_mb: float) -> None:
        """`most_mb`: memory for all stages together."""
        self.most_mb = most_mb
        self.most = KEEP_PROBLEMS
        self.held: OrderedDict[str, Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def enter(self, version: str) -> Prepared | None:
        """The version, with one more user, if it is here. Whoever gets it calls `leave`."""
        with self._lock:
            prepared = self.held.get(version)
            if prepared is not None:
                self.held.move_to_end(version)
                prepared.enter()
            return prepared

    def put(self, prepared: Prepared) -> None:
        """Keep one more, and let go what is then too much."""
        too_much = []
        with self._lock:
            self.held[prepared.package.version] = prepared
            while len(self.held) > 1 and (self._held_mb() > self.most_mb or len(self.held) > self.most):
                too_much.append(self.held.popitem(last=False)[1])
        for other in too_much:
            other.let_go()

    def _held_mb(self) -> float:
        return sum(p.memory_mb for p in self.held.values())

    def drop(self, prepared: Prepared) -> None:
        """Let it go unless that was done, and another may be in its place."""
        version = prepared.package.version
        with self._lock:
            ours = self.held.get(version) is prepared
            if ours:
                del self.held[version]
        if ours:
            prepared.let_go()

    def clear(self) -> None:
        """Close all, used or not: their processes are gone, or are about to be."""
        with self._lock:
            gone = list(self.held.values())
            self.held.clear()
        for prepared in gone:
            prepared.close()
