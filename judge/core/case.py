"""A case: what goes in, what should come out, and who may see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PUBLIC, HIDDEN, TEACH = "public", "hidden", "teach"


@dataclass(frozen=True)
class Case:
    """One case of a problem. `inputs` go to the entry in this order. `group` is public (shown with its answer),
    hidden (nothing shown) or teach (tiny, may be shown after a failure; never counts)."""

    name: str
    group: str
    inputs: Mapping[str, Any]
    note: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """What a program did in place of giving outputs. `type` is a built-in exception class, `code` the error code of a
    fake kernel or of the engine ("" for the program's own errors), `line` the learner's line (0: unknown)."""

    type: str
    code: str = ""
    line: int = 0
    text: str = ""

    @property
    def ours(self) -> bool:
        """Raised by a fake kernel or the engine: such errors can be compared between programs."""
        return bool(self.code)


# What a program gave for one case: named outputs, or a failure. None: it was not run.
Outcome = Mapping[str, Any] | Failure | None
