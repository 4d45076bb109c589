"""Tracks: problems beside the chapters, about one subject, over the tree of some chapter. There is one, F (FlashInfer
inside). And where a diagnosis points, be it into a chapter or a track."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.steps_manifest import ROOT, StepError, _bilingual, chapters_of

FIRST_PROBLEM = 300


@dataclass(frozen=True)
class Track:
    """One track. `tree`: the chapter whose files its problems see. `sections` as a chapter's."""

    folder: Path
    title: Mapping[str, str]
    tree: int
    problems: tuple[int, ...]
    sections: Mapping[str, Mapping[str, str]]


def in_track(problem: int) -> bool:
    """Whether the problem with this id belongs to track F, and to a chapter for its tree only."""
    return problem >= FIRST_PROBLEM


def load_track(root: Path = ROOT) -> Track:
    """Track F. Raises StepError that names the file if it is ill-formed."""
    folder = root / "steps" / "f"
    try:
        raw = tomllib.loads((folder / "track.toml").read_text(encoding="utf-8"))
        return Track(
            folder,
            _bilingual(raw["title"]),
            int(raw["tree"]),
            tuple(int(p) for p in raw["problems"]),
            {anchor: _bilingual(titles) for anchor, titles in raw["sections"].items()},
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise StepError(f"steps/f/track.toml: {type(error).__name__}: {error}") from error


@cache
def _track() -> Track:
    return load_track()


@dataclass(frozen=True)
class Place:
    """Where a section is: its heading, the chapter or track around it, and its text's folder."""

    heading: Mapping[str, str]
    title: Mapping[str, str]
    folder: Path
    chapter: int | None
    anchor: str


def find_section(section: str) -> Place | None:
    """The place of `ch17#plan-run` or `f#f2-attention-state`; None if there is none."""
    folder, _, anchor = section.partition("#")
    number = folder.removeprefix("ch")
    chapter = chapters_of(ROOT).get(int(number)) if number.isdecimal() else None
    if chapter is not None and anchor in chapter.sections:
        return Place(chapter.sections[anchor], chapter.title, chapter.folder, chapter.number, anchor)
    track = _track()
    if folder == "f" and anchor in track.sections:
        return Place(track.sections[anchor], track.title, track.folder, None, anchor)
    return None
