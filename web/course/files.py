"""The files of a chapter's tree as pages: what each is, what the chapter does to it, and which problem has you write
part of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

from judge.packages import Package
from tools.steps import Chapter, symbol_lines, tree_files, tree_sources
from tools.steps_manifest import ROOT
from web.course.tree import file_mark
from web.services import services
from web.text import code_lines

LEXERS = {".py": "python", ".cpp": "cpp", ".cu": "cuda", ".cuh": "cuda", ".h": "cpp"}


@dataclass(frozen=True)
class Symbol:
    """A function, class or method of a file, and its lines."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class Target:
    """A problem whose answer stands in a file. `symbol` is None where it is the whole file."""

    package: Package
    symbol: Symbol | None


@dataclass(frozen=True)
class Change:
    """A file that a chapter touches. `later`: the chapter that explains what was brought in early."""

    path: str
    mark: str
    lines: int
    later: int | None
    symbols: list[Symbol]


def changes(chapter: Chapter) -> list[Change]:
    """What the chapter does to the tree before it: new files, files brought in early, files extended."""
    paths = dict.fromkeys([*chapter.new, *chapter.sources, *chapter.early, *chapter.modified])
    return [
        Change(
            path,
            file_mark(chapter, path),
            len(file_lines(path)),
            chapter.early.get(path),
            added_symbols(chapter, path),
        )
        for path in paths
    ]


def page_files(chapter: Chapter) -> list[str]:
    """Every file of the chapter's tree that has a page: its modules, and what they compile."""
    return [*tree_files(chapter.number), *tree_sources(chapter.number)]


def file_lines(path: str) -> list[Markup]:
    """The file in colours, line by line. `path` must be one of `page_files`."""
    file = ROOT / path
    return _lines(path, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _lines(path: str, changed_ns: int) -> list[Markup]:
    return code_lines((ROOT / path).read_text("utf-8"), LEXERS[Path(path).suffix])


def added_symbols(chapter: Chapter, path: str) -> list[Symbol]:
    """What the chapter adds to the story of a file that an earlier one brought in."""
    return [Symbol(name, *symbol_lines(ROOT, path, name)) for name in chapter.modified.get(path, ())]


def brought_by(chapter: Chapter, path: str) -> Chapter:
    """The chapter, up to this one, in whose tree the file was first. Raises StopIteration for a file that no tree up to
    here has."""
    earlier = [c for c in services().chapters.values() if c.number <= chapter.number]
    return next(c for c in earlier if path in (*c.new, *c.early, *c.sources))


def explained_in(path: str) -> Chapter | None:
    """The chapter that explains the file; None for what is compiled, and while that chapter is not written."""
    return next((c for c in services().chapters.values() if path in c.new), None)


def targets(path: str) -> list[Target]:
    """The problems whose answer stands in the file, in order."""
    found = []
    for package in services().packages.values():
        file, _, name = (package.target or "").partition(":")
        if file == path:
            found.append(Target(package, Symbol(name, *symbol_lines(ROOT, path, name)) if name else None))
    return found
