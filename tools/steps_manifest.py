"""What each chapter brings, as written in steps/chNN/chapter.toml.

The course is one engine told in chapters. A chapter's folder says which files it writes, which it borrows
early from a later chapter, and which it returns to; everything else about a chapter's tree follows from
that. This module reads those files, refuses what contradicts itself, and answers which files a chapter's
tree holds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "minisgl"
LANGUAGES = ("zh", "en")
_SOURCE_SUFFIXES = ("cpp", "cu", "cuh", "h")

_KEYS = {
    "number",
    "stage",
    "title",
    "new",
    "sources",
    "early",
    "modified",
    "main",
    "tests",
    "problems",
    "sections",
}


class StepError(Exception):
    """Something about the chapters or a tree is wrong; the text says what, where and what to do."""


@dataclass(frozen=True)
class Chapter:
    """One chapter. Paths are relative to the repository, with forward slashes ("minisgl/attention/fi.py").

    stage, title: language -> text.
    new: files explained here, also if an earlier chapter brought them in.
    sources: what `new` files compile when they run (CUDA). They go along in the tree and are not counted: a
    count is of modules.
    early: file brought in here -> the chapter that explains it.
    modified: file of an earlier chapter -> the symbols that this chapter adds to its story.
    main: the example that runs on this chapter's tree, or None if there is none yet.
    tests: test files that must pass on this chapter's own tree.
    problems: ids.
    sections: anchor in the chapter's text -> language -> heading.
    """

    number: int
    folder: Path
    stage: Mapping[str, str]
    title: Mapping[str, str]
    new: tuple[str, ...]
    sources: tuple[str, ...]
    early: Mapping[str, int]
    modified: Mapping[str, tuple[str, ...]]
    main: str | None
    tests: tuple[str, ...]
    problems: tuple[int, ...]
    sections: Mapping[str, Mapping[str, str]]

    def text(self, lang: str) -> Path:
        """Where the chapter's text in that language lies (it may not have been written yet)."""
        return self.folder / f"text.{lang}.md"

    @property
    def output(self) -> Path:
        """Where what the main prints is kept, for readers; `steps.py check` holds it to the main."""
        return self.folder / "output.txt"


def load_chapters(root: Path = ROOT) -> dict[int, Chapter]:
    """Every chapter under root/steps, by number; StepError that names the file if one is ill-formed.

    Whether the files exist is not asked here: see `manifest_faults`.
    """
    folders = sorted((root / "steps").glob("ch[0-9][0-9]"))
    chapters = [_read(folder) for folder in folders]
    _refuse_contradictions(chapters)
    return {chapter.number: chapter for chapter in chapters}


@cache
def _chapters_of_this_checkout() -> dict[int, Chapter]:
    return load_chapters(ROOT)


def chapters_of(root: Path) -> dict[int, Chapter]:
    """`load_chapters`, read once a process for this checkout."""
    return _chapters_of_this_checkout() if root == ROOT else load_chapters(root)


def get_chapter(number: int, root: Path = ROOT) -> Chapter:
    """Chapter `number`; StepError that lists the ones there are."""
    chapters = chapters_of(root)
    if number not in chapters:
        known = ", ".join(str(n) for n in chapters) or "none"
        raise StepError(f"there is no chapter {number}; chapters: {known}")
    return chapters[number]


def tree_files(number: int, root: Path = ROOT) -> list[str]:
    """The files of chapter `number`'s tree, in the order in which the course brings them in."""
    get_chapter(number, root)
    files: dict[str, None] = {}
    for chapter in chapters_of(root).values():
        if chapter.number <= number:
            files.update(dict.fromkeys([*chapter.new, *chapter.early]))
    return list(files)


def tree_sources(number: int, root: Path = ROOT) -> list[str]:
    """Files of chapter `number`'s tree that are not Python: what its modules compile when they run."""
    get_chapter(number, root)
    chapters = chapters_of(root).values()
    return [path for chapter in chapters if chapter.number <= number for path in chapter.sources]


def manifest_faults(root: Path = ROOT) -> list[str]:
    """What does not agree between the chapters and the files of the checkout, one sentence each."""
    chapters = chapters_of(root)
    listed: dict[str, str] = {}
    faults = []
    for chapter in chapters.values():
        where = f"{_toml_name(chapter.folder)}"
        for path in [*chapter.new, *chapter.early, *chapter.sources]:
            listed.setdefault(path, where)
        named = [("main", chapter.main)] if chapter.main else []
        for key, path in [*named, *(("tests", test) for test in chapter.tests)]:
            if not (root / path).is_file():
                faults.append(f"{where} lists {path} under {key}, but there is no such file")
        faults += _text_faults(chapter, where)
    for path, where in listed.items():
        if not (root / path).is_file():
            faults.append(f"{where} lists {path}, but there is no such file")
    for key, suffixes in {"new": ("py",), "sources": _SOURCE_SUFFIXES}.items():
        for suffix in suffixes:
            for file in sorted((root / PACKAGE).rglob(f"*.{suffix}")):
                path = file.relative_to(root).as_posix()
                if path not in listed:
                    faults.append(
                        f"{path} is in no chapter: add it to `{key}` of the chapter that explains it"
                    )
    return faults


def _text_faults(chapter: Chapter, where: str) -> list[str]:
    """Anchors of the text and of `sections` must be the same, for wrong solutions point at them."""
    faults = []
    for lang in LANGUAGES:
        text = chapter.text(lang)
        if not text.is_file():
            continue
        anchors = set(re.findall(r"^#+ .*\{#([\w-]+)\}\s*$", text.read_text(encoding="utf-8"), re.MULTILINE))
        for anchor in sorted(set(chapter.sections) - anchors):
            faults.append(
                f"{where} has the section {anchor!r}, but no heading of {text.name} ends with {{#{anchor}}}"
            )
        for anchor in sorted(anchors - set(chapter.sections)):
            faults.append(
                f"a heading of {text.name} has the anchor {{#{anchor}}}, which {where} does not list"
            )
    return faults


def _toml_name(folder: Path) -> str:
    return f"steps/{folder.name}/chapter.toml"


def _read(folder: Path) -> Chapter:
    file = folder / "chapter.toml"
    name = _toml_name(folder)
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StepError(f"{name} is missing: every folder of steps/ needs one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StepError(f"{name} cannot be read: {error}") from error
    if unknown := sorted(set(raw) - _KEYS):
        raise StepError(f"{name}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    number = raw.get("number")
    if number != int(folder.name[2:]):
        raise StepError(f"{name}: number is {number!r}, but the folder says {int(folder.name[2:])}")
    try:
        return Chapter(
            number=int(folder.name[2:]),
            folder=folder,
            stage=_bilingual(raw["stage"]),
            title=_bilingual(raw["title"]),
            new=_paths(raw.get("new", [])),
            sources=_paths(raw.get("sources", []), _SOURCE_SUFFIXES),
            early={path: int(raw["early"][path]) for path in _paths(raw.get("early", {}))},
            modified={path: tuple(raw["modified"][path]) for path in _paths(raw.get("modified", {}))},
            main=raw.get("main"),
            tests=tuple(raw.get("tests", [])),
            problems=tuple(int(problem) for problem in raw.get("problems", [])),
            sections={anchor: _bilingual(titles) for anchor, titles in raw.get("sections", {}).items()},
        )
    except KeyError as error:
        raise StepError(f"{name}: the key {error} is missing") from error
    except (TypeError, ValueError) as error:
        raise StepError(f"{name}: {error}") from error


def _bilingual(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or set(value) != set(LANGUAGES):
        raise ValueError(f"{value!r} should be a table with the keys zh and en")
    return {lang: str(value[lang]) for lang in LANGUAGES}


def _paths(value: Any, suffixes: tuple[str, ...] = ("py",)) -> tuple[str, ...]:
    for path in value:
        if not re.fullmatch(rf"{PACKAGE}(/[a-z0-9_]+)+\.({'|'.join(suffixes)})", path):
            example = "core.py" if suffixes == ("py",) else "kernel/csrc/ops.cpp"
            raise ValueError(f"{path!r} is not a file of the engine such as {PACKAGE}/{example}")
    return tuple(value)


def _refuse_contradictions(chapters: list[Chapter]) -> None:
    explained: dict[str, int] = {}
    brought: dict[str, int] = {}
    for chapter in chapters:
        name = _toml_name(chapter.folder)
        for path in chapter.new:
            if path in explained:
                raise StepError(f"{name}: {path} is new in chapter {explained[path]} already")
            explained[path] = chapter.number
        for path in [*chapter.new, *chapter.early]:
            if path in brought and path in chapter.early:
                raise StepError(f"{name}: {path} is early, but chapter {brought[path]} brought it in already")
            brought.setdefault(path, chapter.number)
        for path in chapter.modified:
            if brought.get(path, chapter.number) == chapter.number:
                raise StepError(f"{name}: {path} is modified, but no earlier chapter brought it in")
    numbers = {chapter.number for chapter in chapters}
    for chapter in chapters:
        for path, later in chapter.early.items():
            name = _toml_name(chapter.folder)
            if later <= chapter.number:
                raise StepError(
                    f"{name}: {path} is early, so the chapter that explains it must be a later one"
                )
            if later in numbers and explained.get(path) != later:
                raise StepError(f"{name}: {path} is early for chapter {later}, which does not list it as new")
