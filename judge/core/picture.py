"""A mismatch as a small picture in text: both tensors one above the other, cut by request, with a mark under each place
that differs.

    kv_indices   │ request 0 │ request 1
      expected   │  4   5    │ 10  11
      got        │  4   5   6│ 10  11
                           ^

How positions belong to requests is in problem.toml's `[requests]`: "each" (one entry a request), "borders" (an indptr,
whose entries lie between requests), or the name of the indptr that cuts the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MOST_REQUESTS = 8
MOST_VALUES = 24  # of one request; what differs further on is said in words by the mismatch itself
WORDS = {
    "request": {"zh": "请求", "en": "request"},
    "expected": {"zh": "应为", "en": "expected"},
    "got": {"zh": "得到", "en": "got"},
    "more": {"zh": "……后面还有", "en": "… there is more"},
}


def pictures(
    expected: Mapping[str, Any], got: Mapping[str, Any] | None, requests: Mapping[str, str], lang: str
) -> list[str]:
    """A picture of every one-dimensional integer output that differs. Outputs are in display form (`core.values`)."""
    drawn = []
    for name, want in expected.items():
        a, b = _numbers(want), _numbers((got or {}).get(name))
        if a is None or b is None or a == b:
            continue
        cut = requests.get(name, "")
        here = _cut(a, cut, expected)
        own = _cut(b, cut, got or {}) or _cut(b, cut, expected)
        if here is None or own is None or len(here) != len(own):
            here, own = [a], [b]
        drawn.append(_draw(name, here, own, cut != "" and len(here) > 1, lang))
    return drawn


def _numbers(value: Any) -> list[int] | None:
    """The entries of a one-dimensional integer tensor or list; None for anything else."""
    if isinstance(value, dict) and value.keys() == {"tensor"}:
        if len(value["tensor"]["shape"]) != 1 or "float" in value["tensor"]["dtype"]:
            return None
        value = value["tensor"]["data"]
    if isinstance(value, list) and all(type(v) is int for v in value):
        return value
    return None


def _cut(values: list[int], how: str, outputs: Mapping[str, Any]) -> list[list[int]] | None:
    """`values` in pieces, one a request (borders: the leading entry, then one each); None where they can't be cut."""
    if how in ("each", "borders"):
        return [[v] for v in values]
    borders = _numbers(outputs.get(how)) if how else None
    if borders is None or len(borders) < 2 or borders[0] != 0 or borders[-1] != len(values):
        return None
    if any(a > b for a, b in pairwise(borders)):
        return None
    return [values[a:b] for a, b in pairwise(borders)]


def _draw(name: str, here: Sequence[list[int]], own: Sequence[list[int]], cut: bool, lang: str) -> str:
    word = {key: text[lang] for key, text in WORDS.items()}
    left = max(_width(name), _width(word["expected"]) + 2, _width(word["got"]) + 2) + 1
    head, above = [_pad(name, left)], [_pad(f"  {word['expected']}", left)]
    below, marks = [_pad(f"  {word['got']}", left)], [" " * left]
    for i, (want, have) in enumerate(zip(here[:MOST_REQUESTS], own[:MOST_REQUESTS], strict=False)):
        size = min(MOST_VALUES, max(len(want), len(have)))
        cells = [_cells(values[:size], size) for values in (want, have)]
        width = max((len(c) for row in cells for c in row), default=0) + 1
        columns = ["".join(c.rjust(width) for c in row) for row in cells]
        title = (
            f" {word['request']} {i}"
            if cut and len(here) == len(own) and size > 1
            else f" {i}"
            if cut
            else ""
        )
        room = max(len(columns[0]), _width(title))
        differs = [a != b for a, b in zip(cells[0], cells[1], strict=True)]
        flags = "".join(("^" if bad else "").rjust(width) for bad in differs)
        for line, text in ((head, title), (above, columns[0]), (below, columns[1]), (marks, flags)):
            line.append(_pad(text, room))
    joins = (" │", " │", " │", "  ")
    rows = [join.join(parts).rstrip() for join, parts in zip(joins, (head, above, below, marks), strict=True)]
    if not cut:
        rows[0] = name
    cut_off = len(here) > MOST_REQUESTS or any(len(p) > MOST_VALUES for p in (*here, *own))
    return "\n".join(row for row in (*rows, word["more"] if cut_off else "") if row)


def _cells(values: Sequence[int], size: int) -> list[str]:
    return [str(v) for v in values] + [""] * (size - len(values))


def _width(text: str) -> int:
    """Columns in a terminal: Chinese characters take two."""
    return sum(2 if ord(c) >= 0x1100 else 1 for c in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
