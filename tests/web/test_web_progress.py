"""The map of the course: what is solved of each part, what comes next, what a chapter builds on."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from tools.steps import load_chapters
from tools.steps_needs import builds_on
from web.course.progress import Progress, next_problem, progress

COURSE = [SimpleNamespace(id=n) for n in (30, 31, 40, 300)]


@pytest.mark.parametrize(
    ("standing", "latest", "expected"),
    [
        ({}, None, (30, False)),
        ({30: False}, 30, (30, True)),
        ({30: True}, 30, (31, False)),
        ({40: True}, 40, (300, False)),
        ({300: True}, 300, (30, False)),
        ({30: False, 40: True}, 40, (300, False)),
        ({30: True, 31: True, 40: True, 300: True}, 31, None),
        ({30: True}, 999, (31, False)),
    ],
)
def test_what_comes_next(standing, latest, expected):
    found = next_problem(COURSE, standing, latest)
    assert (found and (found.package.id, found.started)) == expected


def test_progress_counts_what_is_solved():
    assert progress(COURSE, {30: True, 31: False, 5: True}) == Progress(1, 4)
    assert not progress([], {}).done
    assert progress(COURSE[:1], {30: True}).done


@pytest.mark.parametrize(
    ("lang", "first", "later"),
    [("zh", ["从这里开始"], ["下一题", "已解决 1 / "]), ("en", ["Start with"], ["Next", "1 of "])],
)
def test_the_map_shows_where_i_am(app, browser, judge_all, lang, first, later):
    page = browser.get("/", lang).text
    assert all(words in page for words in first)
    assert 'href="/problems/30"' in page.split('id="next-title"')[1].split("</section>")[0]
    browser.submit(app.extensions["course"].packages[200].solution)
    judge_all()
    page = browser.get("/", lang).text
    assert all(words in page for words in later)
    assert 'href="/problems/201"' in page.split('id="next-title"')[1].split("</section>")[0]


def test_every_part_adds_up_to_the_whole(app, browser):
    page = browser.get("/").text
    parts = [int(n) for n in re.findall(r'max="(\d+)"', page)]
    total = len(app.extensions["course"].packages)
    assert parts[0] == total
    stages = [int(n) for h in re.findall(r"<h2>.*?</h2>", page, re.S) for n in re.findall(r'max="(\d+)"', h)]
    assert sum(stages) == total


def test_a_chapter_builds_on_earlier_ones_only_and_says_so(browser):
    for number in load_chapters():
        assert all(n < number for n in builds_on(number))
    assert 7 in builds_on(10)  # it extends a file of chapter 7
    assert 5 in builds_on(17)  # its backends are chapter 5's backends
    page = browser.get("/chapters/17").text
    head = page.split("<h1>")[1].split("</header>")[0]
    assert [int(n) for n in re.findall(r'href="/chapters/(\d+)"', head)] == list(builds_on(17))
    assert f'href="#chapter-{builds_on(17)[0]}"' in browser.get("/").text
