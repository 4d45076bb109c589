"""The files of a chapter's tree, each on a page; what a chapter changes; its main and what that prints."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tools.steps import load_chapters, symbol_lines, tree_files, tree_sources

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = load_chapters()


def text_of(page):
    """The code on a page, without its colours."""
    code = page.split("<code><span")[1].split("</code></pre>")[0]
    return html.unescape(re.sub(r"<[^>]+>", "", "<span" + code))


@pytest.mark.parametrize("number", [1, 9, 17, 21])
def test_every_file_of_a_tree_has_a_page_and_is_linked(browser, number):
    chapter = browser.get(f"/chapters/{number}").text
    for path in [*tree_files(number), *tree_sources(number)]:
        address = f"/chapters/{number}/files/{path}"
        answer = browser.get(address)
        assert answer.status_code == 200, path
        assert text_of(answer.text).strip("\n") == (ROOT / path).read_text("utf-8").strip("\n")
        assert path in tree_sources(number) or f'href="{address}"' in chapter


@pytest.mark.parametrize(
    "path",
    [
        "minisgl/attention/fi.py",  # comes in chapter 17
        "minisgl/nothing.py",
        "minisgl",
        "../README.md",
        "minisgl/../README.md",
        "%2e%2e/README.md",
        "etc/passwd",
        "problems/200_flashinfer_metadata/solution.py",
        "minisgl/core.py/",
        "minisgl/core.py%00",
    ],
)
def test_nothing_but_the_files_of_that_tree(browser, path):
    assert browser.get(f"/chapters/16/files/{path}").status_code == 404


def test_a_chapter_that_is_not_there_has_no_files(browser):
    assert browser.get("/chapters/99/files/minisgl/core.py").status_code == 404


def test_lines_have_anchors_and_symbols_lead_to_them(browser):
    path, symbols = next(iter(CHAPTERS[10].modified.items()))
    chapter, page = browser.get("/chapters/10").text, browser.get(f"/chapters/10/files/{path}").text
    for symbol in symbols:
        first, last = symbol_lines(ROOT, path, symbol)
        assert f'href="/chapters/10/files/{path}#L{first}"' in chapter
        assert f'href="#L{first}"' in page
        assert f'class="line added" id="L{last}"' in page
    assert page.count('id="L') == len((ROOT / path).read_text("utf-8").rstrip("\n").split("\n"))


@pytest.mark.parametrize(("lang", "words"), [("zh", "这里由你来写"), ("en", "You write this yourself")])
def test_what_a_problem_has_you_write_is_said(browser, lang, words):
    page = browser.get("/chapters/17/files/minisgl/attention/fi.py", lang).text
    assert words in page
    assert 'href="/problems/201"' in page
    first, _ = symbol_lines(ROOT, "minisgl/attention/fi.py", "FlashInferBackend.prepare_metadata")
    assert f'class="line target" id="L{first}"' in page
    assert words not in browser.get("/chapters/17/files/minisgl/attention/fa.py", lang).text


def test_the_note_that_it_gives_away_goes_once_solved(app, browser, judge_all):
    address = "/chapters/1/files/minisgl/core.py"
    assert "Not solved yet" in browser.get(address).text
    browser.submit(app.extensions["course"].packages[42].solution, problem=42)
    assert judge_all()[0]["status"] == "accepted"
    page = browser.get(address).text
    assert "Not solved yet" not in page
    assert 'href="/problems/42"' in page


def test_early_files_say_where_they_are_explained(browser):
    page = browser.get("/chapters/6").text
    for later in CHAPTERS[6].early.values():
        assert f"explained in chapter {later}" in page
    assert "explained in chapter 18" in browser.get("/chapters/7/files/minisgl/engine/graph.py").text


@pytest.mark.parametrize("number", CHAPTERS)
def test_every_chapter_shows_its_main_and_what_it_prints(browser, number):
    chapter = CHAPTERS[number]
    assert chapter.output.is_file(), f"python tools/steps.py output {number}"
    page = browser.get(f"/chapters/{number}").text
    assert f"python {chapter.main}" in page
    first = chapter.output.read_text("utf-8").strip().splitlines()[0]
    assert first in html.unescape(page)
