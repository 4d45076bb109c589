"""Drafts as a person meets them: another browser has them, an older window asks, an expired session loses nothing."""

from __future__ import annotations

import pytest
from browser_steps import editor_text, ready, write

pytestmark = pytest.mark.browser
ONLY = "web"


def saved(page):
    page.locator("[data-draft-note]", has_text="draft saved").wait_for()


def opened(open_page, problem):
    page = open_page(f"/problems/{problem}")
    ready(page)
    return page


def test_another_browser_has_the_draft(open_page):
    page = opened(open_page, 40)
    write(page, "mine = 1\n")
    saved(page)
    assert editor_text(opened(open_page, 40)) == "mine = 1\n"
    bare = open_page("/problems/40", java_script_enabled=False)
    assert bare.locator("textarea[name=source]").input_value() == "mine = 1\n"


@pytest.mark.parametrize(
    ("button", "left"), [("The other one", "new = 1\n"), ("The one in the editor", "old = 1\n")]
)
def test_an_older_window_asks_before_it_replaces_a_newer_draft(open_page, button, left):
    problem = 41 if left.startswith("new") else 43
    old, new = opened(open_page, problem), opened(open_page, problem)
    write(new, "new = 1\n")
    saved(new)
    write(old, "old = 1\n")
    old.get_by_role("alertdialog").wait_for()
    assert editor_text(old) == "old = 1\n"
    assert editor_text(opened(open_page, problem)) == "new = 1\n"  # nothing was saved yet
    old.get_by_role("button", name=button).click()
    saved(old)
    assert editor_text(old) == left
    assert editor_text(opened(open_page, problem)) == left
    write(old, "further = 1\n")
    saved(old)
    assert not old.get_by_role("alertdialog").is_visible()


def test_the_draft_of_an_ended_session_is_there_after_the_next_start(open_page, site):
    page = opened(open_page, 50)
    cookies = page.context.cookies()
    page.context.clear_cookies()
    write(page, "kept = 1\n")
    page.locator("[data-draft-note]", has_text="in this browser").wait_for()
    page.wait_for_function("() => localStorage.getItem('draft:50') === 'kept = 1\\n'")
    page.goto(site.base + "/problems/50")
    assert page.locator("[data-editor]").count() == 0  # the session is gone
    page.context.add_cookies(cookies)
    page.goto(site.base + "/problems/50")
    ready(page)
    assert editor_text(page) == "kept = 1\n"
    saved(page)
    assert editor_text(opened(open_page, 50)) == "kept = 1\n"


def test_a_page_that_is_only_looked_at_saves_nothing(open_page):
    page = open_page("/problems/51")
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    ready(page)
    page.goto(page.url.replace("51", "52"))
    ready(page)
    page.wait_for_timeout(2500)
    assert "PUT" not in sent


def test_a_text_too_long_to_be_kept_stays_in_this_browser_and_is_sent_once(open_page):
    page = opened(open_page, 53)
    answers = []
    page.on(
        "response", lambda response: answers.append(response.status) if "/draft" in response.url else None
    )
    write(page, "# " + "x" * 70_000)
    page.locator("[data-draft-note]", has_text="in this browser").wait_for()
    page.wait_for_timeout(3500)
    assert answers == [413]
    write(page, "short = 1\n")
    saved(page)
