"""Strict or faithful, and whether the pretended GPU context is still alive.

A GPU answers most wrong metadata with wrong numbers. `strict`, the default, refuses it and explains;
`faithful` does what the measured kernel did: wrong numbers of the right shape, its own error, or an
illegal memory access after which nothing works until the process ends.

Invariants
- `_mode` is "strict" or "faithful".
- once `_lost` is set, every call raises until `new_context()`; leaving a mode does not heal it,
  because a real context does not heal either.
"""

from __future__ import annotations

from types import TracebackType
from typing import Literal, cast

Mode = Literal["strict", "faithful"]

_mode: Mode = "strict"
_lost: tuple[str, str] | None = None


class _Chosen:
    """What `use` returns: ignored for good, or a context manager that restores the mode before it."""

    def __init__(self, before: Mode) -> None:
        self._before = before

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _mode
        _mode = self._before


def use(mode: str) -> _Chosen:
    """Choose the mode for the whole process, from this call on.

    `use("faithful")` stays; `with use("faithful"): ...` goes back at the end of the block.
    Raises ValueError for another word.
    """
    global _mode
    if mode not in ("strict", "faithful"):
        raise ValueError(f'mode is "strict" or "faithful", not {mode!r}')
    chosen = _Chosen(_mode)
    _mode = cast(Mode, mode)
    return chosen


def current() -> Mode:
    """The mode in force."""
    return _mode


def is_strict() -> bool:
    """Whether wrong metadata is refused with an explanation."""
    return _mode == "strict"


def lose_context(cause: str, error: str) -> None:
    """Remember that a kernel failed on the GPU: every later call fails too. `cause` is a code, `error` what CUDA says."""
    global _lost
    _lost = cause, error


def lost_context() -> tuple[str, str] | None:
    """The code of the mistake that ended the context and CUDA's error, or None while it lives."""
    return _lost


def new_context() -> None:
    """A fresh context, as only a new process would have on a GPU. For tests."""
    global _lost
    _lost = None
