"""What changed between two texts, line by line, in bounded time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import takewhile

CONTEXT = 3
# Lines that differ at most, ends that agree not counted.
MOST_LINES = 2000
# How many pairs of equal lines are looked at; where there are more, lines that come very often are no anchors. The worst
# texts within both bounds take about a second.
MOST_PAIRS = 40_000


@dataclass(frozen=True)
class Row:
    """One line. `kind`: "same", "old" (gone) or "new" (added); numbers count from 1."""

    kind: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True)
class Hunk:
    """Changes that lie near each other; `skipped` lines before it are the same in both."""

    skipped: int
    rows: list[Row]


@dataclass(frozen=True)
class Comparison:
    """The change from one text to the other. `too_long`: too many lines differ to be laid beside each other."""

    hunks: list[Hunk] = field(default_factory=list)
    skipped_after: int = 0
    too_long: bool = False

    @property
    def added(self) -> int:
        """How many lines are new."""
        return sum(row.kind == "new" for hunk in self.hunks for row in hunk.rows)

    @property
    def removed(self) -> int:
        """How many lines are gone."""
        return sum(row.kind == "old" for hunk in self.hunks for row in hunk.rows)


def compare(old: str, new: str) -> Comparison:
    """The change from `old` to `new`; without hunks if they are the same line for line."""
    before, after = old.split("\n"), new.split("\n")
    head = _agreeing(before, after)
    tail = _agreeing(before[head:][::-1], after[head:][::-1])
    ends = len(before) - tail, len(after) - tail
    if max(ends[0] - head, ends[1] - head) > MOST_LINES:
        return Comparison(too_long=True)
    opcodes = [("equal", 0, head, 0, head)]
    middle = before[head : ends[0]], after[head : ends[1]]
    matcher = SequenceMatcher(None, *middle, autojunk=_equal_pairs(*middle) > MOST_PAIRS)
    for kind, a, b, c, d in matcher.get_opcodes():
        opcodes.append((kind, a + head, b + head, c + head, d + head))
    opcodes.append(("equal", ends[0], len(before), ends[1], len(after)))
    return _cut([row for op in opcodes for row in _rows(op, before, after)])


def _agreeing(a: list[str], b: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _equal_pairs(a: list[str], b: list[str]) -> int:
    counts = Counter(b)
    return sum(counts[line] for line in a)


def _rows(op: tuple[str, int, int, int, int], before: list[str], after: list[str]) -> Iterator[Row]:
    kind, a, b, c, d = op
    if kind == "equal":
        yield from (Row("same", a + i + 1, c + i + 1, before[a + i]) for i in range(b - a))
        return
    yield from (Row("old", i + 1, None, before[i]) for i in range(a, b))
    yield from (Row("new", None, i + 1, after[i]) for i in range(c, d))


def _cut(rows: list[Row]) -> Comparison:
    """The rows near a change, in hunks."""
    keep = {
        near
        for i, row in enumerate(rows)
        if row.kind != "same"
        for near in range(max(0, i - CONTEXT), min(len(rows), i + CONTEXT + 1))
    }
    hunks: list[Hunk] = []
    skipped = 0
    for i, row in enumerate(rows):
        if i not in keep:
            skipped += 1
            continue
        if skipped or not hunks:
            hunks.append(Hunk(skipped, []))
            skipped = 0
        hunks[-1].rows.append(row)
    return Comparison(hunks, skipped)
