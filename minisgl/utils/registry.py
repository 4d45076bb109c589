"""A table of names that stand for classes, imported when they are asked for.

Attention backends, models and caches are chosen by name. The table says where each class lives, not the class
itself, for two reasons: a backend may need a package that this machine lacks, and in the course a chapter's
tree holds only the files written so far. Asking for a name that a later chapter brings is answered with that
chapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """`target` is "module:class"; `chapter` is where the course writes that module."""

    target: str
    chapter: int


class Registry:
    """Names of one kind of thing.

    kind: what the things are, for error messages ("attention backend").
    entries: name -> Entry.
    """

    def __init__(self, kind: str, entries: Mapping[str, Entry]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def names(self) -> list[str]:
        """Every name, in the table's order."""
        return list(self._entries)

    def load(self, name: str) -> Any:
        """The class that `name` stands for.

        ValueError for a name that is not in the table; NotImplementedError for one whose module is not in
        this tree. An import that fails inside the module is raised as it is.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise ValueError(f"unknown {self.kind} {name!r}: choose from {', '.join(self._entries)}")
        module_name, _, class_name = entry.target.partition(":")
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            # Only the target itself (or its package) being absent means "later"; any other missing module is
            # a fault in a file that is here.
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise
            raise NotImplementedError(
                f"{self.kind} {name!r} ({module_name}) arrives in chapter {entry.chapter}"
            ) from error
        return getattr(module, class_name)
