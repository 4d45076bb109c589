"""A statement in a terminal: lines and tables broken where Chinese may be broken, hints kept for who asks for them.

rich breaks lines at spaces only, and cuts the cells of a table off at words that do not fit. A Chinese sentence has no
spaces, so its lines end anywhere and its tables lose their ends. `Prose` is a `rich.text.Text` that knows better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from rich import markdown
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.containers import Lines
from rich.measure import Measurement
from rich.text import Text

HINT = re.compile(r"^::: *hint +(?P<title>[^\n]*)\n(?P<text>.*?)^:::[ \t]*$\n?", re.MULTILINE | re.DOTALL)
# What no line begins with, and what no line ends with.
CLOSING = frozenset("，。、；：？！）》」』】〉”’…,.;:?!)]}%")
OPENING = frozenset("（《「『【〈“‘([{")


class Hint(NamedTuple):
    title: str
    text: str


def split_hints(statement: str) -> tuple[str, list[Hint]]:
    """The statement without its folded hints, and the hints."""
    hints = [Hint(found["title"].strip(), found["text"].strip()) for found in HINT.finditer(statement)]
    return HINT.sub("", statement).rstrip() + "\n", hints


def pieces(line: str) -> Iterator[str]:
    """The parts of a line between which it may be broken; spaces belong to the part before them."""
    begin = 0
    for i in range(1, len(line)):
        before, after = line[i - 1], line[i]
        if after == " " or after in CLOSING or before in OPENING:
            continue
        if before == " " or cell_len(before) == 2 or cell_len(after) == 2:
            yield line[begin:i]
            begin = i
    yield line[begin:]


def breaks(line: str, width: int) -> list[int]:
    """Where to break a line so that no part is wider than `width` cells; a piece that is wider itself is cut."""
    found: list[int] = []
    position = used = 0
    for piece in pieces(line):
        if used and used + cell_len(piece.rstrip()) > width:
            found.append(position)
            used = 0
        if cell_len(piece.rstrip()) <= width:
            position += len(piece)
            used += cell_len(piece)
            continue
        for char in piece:
            if used and used + cell_len(char) > width:
                found.append(position)
                used = 0
            position += 1
            used += cell_len(char)
    return found


class Prose(Text):
    """Text that breaks between Chinese characters, and never loses its end."""

    def wrap(self, console: Console, width: int, **_: Any) -> Lines:
        lines = Lines()
        for line in self.split(allow_blank=True):
            for part in line.divide(breaks(line.plain, width)):
                part.rstrip()
                lines.append(part)
        return lines

    def copy(self) -> Prose:
        """rich makes a plain Text of it, as it does with every heading of a table."""
        copied = Prose(justify=self.justify, overflow=self.overflow)
        copied.append_text(self)
        return copied

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        lines = self.plain.splitlines() or [""]
        narrowest = max(cell_len(piece.rstrip()) for line in lines for piece in pieces(line))
        return Measurement(narrowest, max(cell_len(line) for line in lines))


class Paragraph(markdown.Paragraph):
    def on_enter(self, context: markdown.MarkdownContext) -> None:
        super().on_enter(context)
        self.text = Prose()


class Cell(markdown.TableDataElement):
    def on_enter(self, context: markdown.MarkdownContext) -> None:
        super().on_enter(context)
        self.content = Prose(overflow="fold")


class Statement(markdown.Markdown):
    """A statement, or a part of it, for `Console.print`."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "paragraph_open": Paragraph,
        "td_open": Cell,
        "th_open": Cell,
    }
