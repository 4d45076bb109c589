"""Which earlier chapters a chapter builds on: those that explain what its files import, or what it comes back to."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools.steps_check import _engine_imports, _module
from tools.steps_manifest import ROOT, chapters_of, get_chapter


def builds_on(number: int, root: Path = ROOT) -> tuple[int, ...]:
    """The chapters before `number` that explain a file which this chapter's new files and main import, or which it
    extends, in order. StepError if there is no such chapter."""
    return _of_this_checkout(number) if root == ROOT else _builds_on(number, root)


@cache
def _of_this_checkout(number: int) -> tuple[int, ...]:
    return _builds_on(number, ROOT)


def _builds_on(number: int, root: Path) -> tuple[int, ...]:
    chapter = get_chapter(number, root)
    explained = {path: c.number for c in chapters_of(root).values() for path in c.new}
    by_module = {_module(path): n for path, n in explained.items()}
    found = {explained[path] for path in chapter.modified if path in explained}
    for path in [*chapter.new, *([chapter.main] if chapter.main else [])]:
        for _, module, names in _engine_imports(root / path):
            found |= {by_module[m] for m in (module, *(f"{module}.{n}" for n in names)) if m in by_module}
    return tuple(sorted(n for n in found if n < number))
