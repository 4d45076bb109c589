"""Search: problems, chapters, sections and files, by words of either language."""

from __future__ import annotations

import html
import re

import pytest

from tools.steps_manifest import ROOT
from web.search.index import MOST, make_index, search


@pytest.fixture(scope="module")
def index():
    from judge.packages import survey
    from tools.steps import load_chapters

    return make_index(survey().packages, load_chapters())


def first(index, query):
    groups = search(index, query)
    kind = next(iter(groups), None)
    return kind and (kind, groups[kind][0].number or groups[kind][0].anchor or groups[kind][0].chapter)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("200", ("problem", 200)),
        ("２００", ("problem", 200)),  # full-width digits
        ("FlashInfer 元数据", ("problem", 200)),
        ("flashinfer METADATA", ("problem", 200)),
        ("flashinfer_metadata", ("problem", 200)),
        ("attention/fi.py", ("file", "minisgl/attention/fi.py")),
        ("make_indptr", ("symbol", "minisgl/attention/utils.py")),
        ("FlashInferBackend.prepare_metadata", ("symbol", "minisgl/attention/fi.py")),
        ("快路径 qo_indptr", ("problem", 204)),
        ("zzz", None),
        ("", None),
        (" \t ", None),
        ("200 zzz", None),
    ],
)
def test_what_is_meant_comes_first(index, query, expected):
    assert first(index, query) == expected


def test_every_problem_is_found_by_its_number_and_both_titles(index):
    for entry in [e for e in index if e.kind == "problem"]:
        assert search(index, str(entry.number))["problem"][0] is entry
        for title in entry.title.values():
            assert entry in search(index, title)["problem"]


def test_every_chapter_section_and_file_is_found(index):
    for entry in [e for e in index if e.kind != "problem"]:
        for title in entry.title.values():
            assert entry in search(index, title)[entry.kind] or len(search(index, title)[entry.kind]) == MOST


def test_groups_are_capped(index):
    assert max(map(len, search(index, "e").values())) == MOST
    assert search(index, "e " * 5000).keys() == search(index, "e").keys()


def test_the_name_of_a_function_leads_to_its_line(browser):
    page = browser.get("/search?q=make_indptr").text
    [line] = re.findall(r"/files/minisgl/attention/utils\.py#L(\d+)", page)
    source = (ROOT / "minisgl/attention/utils.py").read_text("utf-8").splitlines()
    assert "def make_indptr" in source[int(line) - 1]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_page_links_to_what_it_finds(browser, lang):
    page = browser.get("/search?q=radix", lang).text
    links = re.findall(r'<li>\s*<a href="([^"]+)"', page)
    assert any(link.startswith("/problems/") for link in links)
    assert any("/files/minisgl/kvcache/radix" in link for link in links)
    for link in links:
        assert browser.get(html.unescape(link).partition("#")[0], lang).status_code == 200
    assert 'name="q" value="radix"' in page


@pytest.mark.parametrize(("lang", "words"), [("zh", "没有同时包含"), ("en", "Nothing has all")])
def test_nothing_found_is_said(browser, lang, words):
    assert words in browser.get("/search?q=zzzz", lang).text
    assert words not in browser.get("/search", lang).text


def test_a_hostile_query_is_shown_as_text(browser):
    page = browser.get("/search?q=%3Cscript%3Ealert(1)%3C/script%3E%00%ff").text
    assert "<script>alert" not in page
    assert browser.get("/search?q=" + "x" * 5000).status_code == 200


def test_every_page_has_the_field(browser):
    assert 'role="search" action="/search"' in browser.get("/problems/200").text
