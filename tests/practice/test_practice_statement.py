"""A statement in a terminal: nothing is cut off, lines end where they may, hints stay folded."""

import itertools
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from judge.packages import find_package, survey
from practice.printing import TEXTS, print_hint, print_statement
from practice.statement import CLOSING, OPENING, breaks, pieces, split_hints

PACKAGES = list(survey().packages.values())


def printed(show, *args, width=80):
    console = Console(width=width, no_color=True, highlight=False, force_terminal=False)
    with console.capture() as capture:
        show(console, *args)
    return capture.get()


def letters(text):
    """How often each letter occurs: what is left of a text without its layout and Markdown's marks."""
    return Counter(c for c in re.sub(r"^```\w*$", "", text, flags=re.MULTILINE) if c.isalpha())


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_no_letter_of_any_statement_is_lost(lang, width):
    for package in PACKAGES:
        body, hints = split_hints(package.statement(lang))
        wanted = letters(package.title[lang]) + letters(body)
        if hints:
            wanted += letters(TEXTS["hints"][lang].format(id=package.id))
            wanted += letters("".join(hint.title for hint in hints))
        assert letters(printed(print_statement, package, lang, width=width)) == wanted, package.id


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_hint_is_shown_to_who_asks_for_it(lang):
    package = find_package(220)
    _, hints = split_hints(package.statement(lang))
    statement = printed(print_statement, package, lang)
    assert len(hints) == 2
    for number, hint in enumerate(hints, 1):
        assert hint.title in statement
        assert letters(printed(print_hint, package, number, lang)) == letters(hint.title + hint.text)
    assert "strides[3]" in hints[0].text
    assert "strides[3]" not in statement


def test_a_hint_that_is_not_there_is_not_shown():
    assert not print_hint(Console(quiet=True), find_package(220), 3, "en")


def test_chinese_is_broken_between_characters_but_not_before_a_comma():
    line = "先转换还是先乘、eps 放在哪里，结果（float16）都会差一点。"
    ends = breaks(line, 18)
    parts = [line[a:b].rstrip() for a, b in zip([0, *ends], [*ends, len(line)], strict=True)]
    assert parts == ["先转换还是先乘、", "eps 放在哪里，结果", "（float16）都会差", "一点。"]


@given(st.text(alphabet="ab, .（）()“”，。中文字 ", min_size=1, max_size=60), st.integers(2, 30))
def test_parts_fit_and_begin_and_end_as_they_should(line, width):
    assert "".join(pieces(line)) == line
    ends = breaks(line, width)
    parts = [line[a:b] for a, b in zip([0, *ends], [*ends, len(line)], strict=True)]
    assert "".join(parts) == line
    whole = all(cell_len(piece.rstrip()) <= width for piece in pieces(line))
    for before, after in itertools.pairwise(parts):
        assert cell_len(before.rstrip()) <= width
        if whole:
            assert after[0] not in CLOSING
            assert not after.startswith(" ")
            assert before[-1] not in OPENING
