"""What changed between two of my submissions."""

from __future__ import annotations

import re

import pytest

from web.submissions.compare import MOST_LINES, compare


def shown(change):
    signs = {"same": " ", "old": "-", "new": "+"}
    return [signs[row.kind] + row.text for hunk in change.hunks for row in hunk.rows]


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ("a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]),
        ("a", "a\nb", [" a", "+b"]),
        ("a\nb", "b", ["-a", " b"]),
        ("", "a", ["-", "+a"]),
        ("a\n", "a", [" a", "-"]),
        ("same", "same", []),
        ("", "", []),
    ],
)
def test_lines_are_told_apart(old, new, rows):
    change = compare(old, new)
    assert shown(change) == rows
    assert change.added == sum(r[0] == "+" for r in rows)
    assert change.removed == sum(r[0] == "-" for r in rows)


def test_every_line_of_both_texts_is_there_or_counted_as_skipped():
    old = [f"line {i}" for i in range(40)]
    new = [*old[:10], "in between", *old[10:25], *old[26:], "at the end"]
    change = compare("\n".join(old), "\n".join(new))
    assert [h.skipped for h in change.hunks] == [7, 9, 8]
    rows = [row for hunk in change.hunks for row in hunk.rows]
    for row in rows:
        assert row.old is None or old[row.old - 1] == row.text
        assert row.new is None or new[row.new - 1] == row.text
    hidden = sum(h.skipped for h in change.hunks) + change.skipped_after
    assert sum(r.new is not None for r in rows) + hidden == len(new)
    assert sum(r.old is not None for r in rows) + hidden == len(old)


@pytest.mark.parametrize("lines", [MOST_LINES - 1, MOST_LINES, 30_000])
def test_lines_that_all_come_again_and_again_are_not_paired_one_by_one(lines):
    """What a comparison would take longest over: it is one block, or said to be too long."""
    old = [str(i % 20) for i in range(lines)]
    new = [str((i * 7 + i // 20) % 20) for i in range(lines)]
    change = compare("\n".join(["x", *old]), "\n".join(["y", *new]))
    assert change.too_long is (lines >= MOST_LINES)
    assert change.too_long or change.added > 0.99 * lines


@pytest.fixture
def two(browser):
    """Two submissions: one line differs."""
    return browser.submit("a = 1\nb = 2\n"), browser.submit("a = 1\nb = 3 < 4\n")


@pytest.mark.parametrize(("lang", "words"), [("zh", "增加 1 行"), ("en", "1 line added")])
def test_the_page_shows_both_lines(browser, two, lang, words):
    old, new = two
    for query in (f"old={old}&new={new}", f"old={new}&new={old}"):  # the earlier one is the old one
        page = browser.get(f"/problems/200/compare?{query}", lang).text
        assert words in page
        assert re.search(r'<tr class="old">.*?b = 2.*?<tr class="new">.*?b = 3 &lt; 4', page, re.S)


@pytest.mark.parametrize(("lang", "words"), [("zh", "没有改动"), ("en", "No change")])
def test_no_change_is_said(browser, two, lang, words):
    again = browser.submit("a = 1\nb = 2\n")
    assert words in browser.get(f"/problems/200/compare?old={two[0]}&new={again}", lang).text
    assert words in browser.get(f"/problems/200/compare?old={again}&new={again}", lang).text


def test_other_line_ends_are_no_change_of_a_line(browser, two):
    other = browser.submit(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    page = browser.get(f"/problems/200/compare?old={two[0]}&new={other}").text
    assert "No line changed" in page
    assert 'class="diff"' not in page


def test_hostile_text_stays_text(browser, two):
    hostile = browser.submit("</code></table><script>alert(1)</script>\n")
    page = browser.get(f"/problems/200/compare?old={two[0]}&new={hostile}").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("query", ["", "old=1", "old=x&new=1", "old=-1&new=1", "old=1&new=" + "9" * 40])
def test_a_query_that_names_no_two_submissions_is_refused(browser, query):
    assert browser.get(f"/problems/200/compare?{query}").status_code == 400


def test_only_my_own_of_this_problem(app, browser, two):
    theirs = app.extensions["course"].queue.submit(
        user="somebody", problem=200, version="0" * 16, source=b"theirs = 1"
    )
    elsewhere = browser.submit("x = 1", problem=201)
    for other in (theirs, elsewhere, 999):
        assert browser.get(f"/problems/200/compare?old={two[0]}&new={other}").status_code == 404
    assert browser.get(f"/problems/999/compare?old={two[0]}&new={two[1]}").status_code == 404


def test_pages_lead_there(browser, two):
    old, new = two
    page = browser.get("/problems/200").text
    assert 'action="/problems/200/compare"' in page
    assert re.search(rf'name="old" value="{old}"[^>]* checked', page)
    assert re.search(rf'name="new" value="{new}"[^>]* checked', page)
    assert f"/problems/200/compare?old={old}&amp;new={new}" in browser.get(f"/submissions/{new}").text
    assert "/compare?" not in browser.get(f"/submissions/{old}").text
