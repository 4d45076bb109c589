"""How far somebody is in the course: what they solved of each part, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judge.packages import Package


@dataclass(frozen=True)
class Progress:
    """Problems solved of those there are."""

    solved: int
    total: int

    @property
    def done(self) -> bool:
        """There is something to solve, and all of it is."""
        return 0 < self.total == self.solved


@dataclass(frozen=True)
class Next:
    """The problem to do next. `started`: it has been submitted to already."""

    package: Package
    started: bool


@dataclass(frozen=True)
class Onward:
    """Where somebody stands who has just solved a problem: what comes next (None: everything is solved), and how much of the
    course is done."""

    next: Next | None
    course: Progress


def progress(packages: Iterable[Package], standing: Mapping[int, bool]) -> Progress:
    """`standing`: problem -> whether it is solved, of those that were tried."""
    solved = [standing.get(package.id, False) for package in packages]
    return Progress(sum(solved), len(solved))


def next_problem(course: list[Package], standing: Mapping[int, bool], latest: int | None) -> Next | None:
    """What comes next in `course` (its order): the problem of the latest submission until that is solved, then the first
    unsolved one behind it, then the first unsolved one at all. None when everything is solved."""
    places = [package.id for package in course]
    here = places.index(latest) if latest in places else 0
    for package in [*course[here:], *course[:here]]:
        if not standing.get(package.id, False):
            return Next(package, package.id in standing)
    return None
