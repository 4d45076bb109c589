"""What views work with: the one object that an app carries, and who is asking."""

from __future__ import annotations

from dataclasses import dataclass

from flask import abort, current_app

from judge.packages import Package
from judge.store import Queue, Store
from judge.store.bell import bell_folder, ring
from tools.steps import Chapter
from web.accounts.identity import identity
from web.settings import Settings


@dataclass(frozen=True)
class Services:
    """The parts behind one app."""

    settings: Settings
    store: Store
    queue: Queue
    packages: dict[int, Package]
    chapters: dict[int, Chapter]

    def ring(self) -> None:
        """Tell the workers that there is something to do."""
        ring(bell_folder(self.store.url, make=False))


def services() -> Services:
    """Those of the app that handles this request."""
    found: Services = current_app.extensions["course"]
    return found


def user() -> str:
    """The key of whoever is asking: what their submissions are kept under. Pages for strangers don't ask."""
    who = identity()
    if who is None:
        abort(401)
    return who.key


def only_with_accounts() -> None:
    """Before the pages of accounts and classes: aborts with 404 in local mode, which has neither."""
    if services().settings.accounts == "none":
        abort(404)


def package_or_404(problem: int) -> Package:
    """The problem of that number; aborts with 404 if there is none."""
    package = services().packages.get(problem)
    if package is None:
        abort(404)
    return package
