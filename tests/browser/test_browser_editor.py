"""The editor: it completes what the problem names, and shows what ruff says, once something was written."""

from __future__ import annotations

import pytest
from browser_steps import ready, write

pytestmark = pytest.mark.browser
ONLY = "web"


def test_names_of_the_problem_are_completed(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "x = ")
    page.keyboard.type("kv_la")
    page.locator(".cm-tooltip-autocomplete li", has_text="kv_last_page_len").wait_for()
    page.wait_for_timeout(100)  # a list that has just come takes no key, so that nobody accepts it unseen
    page.keyboard.press("Enter")
    assert "x = kv_last_page_len" in page.locator(".cm-content").inner_text()


def test_a_name_with_a_dot_is_completed_after_its_dot(open_page):
    page = open_page("/problems/141")
    ready(page)
    write(page, "")
    page.keyboard.type("device.la")
    page.locator(".cm-tooltip-autocomplete li", has_text="device.launch").wait_for()


def test_ruff_is_loaded_after_the_first_change_and_says_what_is_wrong(open_page):
    page = open_page("/problems/200")
    asked, said = [], []
    page.context.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.reload()
    ready(page)
    page.wait_for_timeout(1500)
    assert not [url for url in asked if "ruff" in url]
    write(page, "# 🎉\ndef f(a):\n    return undefined_name\n")
    page.locator(".cm-lint-marker-warning, .cm-lint-marker-error").wait_for()
    assert [url for url in asked if "ruff-worker" in url]
    mark = page.locator(".cm-lintRange")
    assert mark.inner_text() == "undefined_name"
    mark.hover()
    tip = page.locator(".cm-tooltip-lint")
    tip.wait_for()
    assert "F821" in tip.inner_text()
    write(page, "def f(a):\n    return a\n")
    page.locator(".cm-lint-marker").wait_for(state="detached")
    assert not said, said


def test_a_program_that_does_not_parse_is_marked(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "def f(:\n")
    page.locator(".cm-lint-marker-error").first.wait_for()


def test_the_editor_works_where_ruff_cannot_be_loaded(open_page):
    page = open_page("/problems/200")
    page.context.route("**/ruff-*.wasm", lambda route: route.abort())
    said = []
    page.on("console", lambda message: said.append(message.text))
    ready(page)
    write(page, "x = undefined_name\n")
    page.wait_for_timeout(2500)
    assert page.locator(".cm-lint-marker").count() == 0
    assert any("ruff does not run here" in text for text in said)
    assert "undefined_name" in page.locator(".cm-content").inner_text()


def test_the_search_in_the_editor_speaks_the_readers_language(open_page):
    page = open_page("/problems/200", "zh-CN")
    ready(page)
    page.click(".cm-content")
    page.keyboard.press("ControlOrMeta+F")
    panel = page.locator(".cm-search")
    panel.wait_for()
    assert panel.get_by_role("button", name="全部替换").count() == 1
    assert panel.locator("input").first.get_attribute("placeholder") == "查找"
    assert "match case" not in panel.inner_text()
