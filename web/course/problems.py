"""Which problems belong to a chapter, and which to the track beside the chapters."""

from __future__ import annotations

from judge.packages import Package
from judge.store import reading
from tools.steps_track import in_track
from web.course.progress import Onward, next_problem, progress
from web.services import services, user


def problems_by_chapter() -> dict[int, list[Package]]:
    """The problems of each chapter that has some, in order."""
    found: dict[int, list[Package]] = {}
    for package in services().packages.values():
        if not in_track(package.id):
            found.setdefault(package.chapter, []).append(package)
    return dict(sorted(found.items()))


def course_problems() -> list[Package]:
    """All problems in the order of the course: chapter by chapter, then the track."""
    return [p for found in problems_by_chapter().values() for p in found] + track_problems()


def track_problems() -> list[Package]:
    """The problems of track F, in order."""
    return [p for p in services().packages.values() if in_track(p.id)]


def onward(problem: int) -> Onward:
    """What whoever asks goes on with after `problem`."""
    course = course_problems()
    with services().store.read() as session:
        standing = reading.standing(session, user())
    return Onward(next_problem(course, standing, problem), progress(course, standing))
