"""A worker prepares problems while nobody waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from judge.packages import survey
from judge.store import Queue, Store
from judge.worker import _warm

PACKAGES = survey().packages


@dataclass
class Quiet:
    """What `_warm` sees of a worker: it notes which problems were warmed."""

    busy: bool = False
    stopping: bool = False
    packages: dict[int, Any] = field(default_factory=lambda: PACKAGES)
    warmed: list[int] = field(default_factory=list)
    broken: int = 0

    @property
    def judge(self) -> Quiet:
        return self

    def warm(self, package: Any) -> None:
        if package.id == self.broken:
            raise RuntimeError("a reference that fails")
        self.warmed.append(package.id)


def test_problems_of_late_come_first_and_no_more_than_are_kept(store: Store, queue: Queue) -> None:
    for problem in (200, 40, 77_777):
        queue.submit(user="ada", problem=problem, version="0" * 16, source=b"x")
    worker = Quiet()
    _warm(worker, store, 7)  # type: ignore[arg-type]
    assert worker.warmed[:2] == [40, 200]
    assert len(worker.warmed) == len(set(worker.warmed)) == 7


def test_one_that_fails_does_not_stop_the_others(store: Store) -> None:
    worker = Quiet(broken=min(PACKAGES))
    _warm(worker, store, 7)  # type: ignore[arg-type]
    assert len(worker.warmed) == 6


def test_a_worker_that_ends_warms_nothing_more(store: Store) -> None:
    worker = Quiet(busy=True, stopping=True)
    _warm(worker, store, 7)  # type: ignore[arg-type]
    assert worker.warmed == []
