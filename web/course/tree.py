"""A chapter's files as nested folders, with what the chapter does to each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tools.steps import Chapter


@dataclass
class Folder:
    """A folder of the tree. `files` are (name, path, mark): mark is "new", "early", "modified" or ""."""

    name: str
    folders: dict[str, Folder] = field(default_factory=dict)
    files: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Files in it, folders below included."""
        return len(self.files) + sum(f.count for f in self.folders.values())

    @property
    def changed(self) -> bool:
        """Something in it, however deep, is marked."""
        return any(mark for _, _, mark in self.files) or any(f.changed for f in self.folders.values())


def folder_tree(chapter: Chapter, files: list[str]) -> Folder:
    """`files` (paths with slashes), marked for `chapter`."""
    root = Folder("")
    for path in files:
        here = root
        *folders, name = PurePosixPath(path).parts
        for part in folders:
            here = here.folders.setdefault(part, Folder(part))
        here.files.append((name, path, file_mark(chapter, path)))
    return root


def file_mark(chapter: Chapter, path: str) -> str:
    """What the chapter does to a file: "new", "early", "modified" or ""."""
    if path in chapter.new or path in chapter.sources:
        return "new"
    if path in chapter.early:
        return "early"
    return "modified" if path in chapter.modified else ""
