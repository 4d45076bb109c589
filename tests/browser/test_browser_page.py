"""The problem page as a place to work: draft, starter, keyboard, live view, language, theme, no
JavaScript."""

from __future__ import annotations

import re

import pytest
from browser_steps import RUN, editor_text, ready, send, settle, submit, write
from browser_walk import faults_of

from judge.packages import survey

pytestmark = pytest.mark.browser
P200 = survey().packages[200]
# Slow for half of the cases: whoever watches has seen enough, and waits for the end.
SLOW = """import time

asked = []


def flashinfer_metadata(reqs, page_table, page_size):
    asked.append(time.sleep(0.3 if len(asked) < 10 else 0))
"""


def test_a_draft_survives_a_reload_and_the_starter_comes_back(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "mine = 1\n")
    page.wait_for_function("() => localStorage.getItem('draft:200') === 'mine = 1\\n'")
    page.reload()
    ready(page)
    assert editor_text(page) == "mine = 1\n"
    assert "draft" in page.locator("[data-draft-note]").inner_text()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Restore the starter").click()
    page.wait_for_function("() => localStorage.getItem('draft:200') === null")
    assert editor_text(page) == P200.starter.rstrip("\n") + "\n"


def test_drafts_of_two_problems_are_kept_apart(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "mine = 200\n")
    page.goto(page.url.replace("200", "201"))
    ready(page)
    assert "mine" not in editor_text(page)


def test_an_old_submission_opens_over_the_draft(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "old = 1\n")
    number = submit(page).get_attribute("data-submission")
    write(page, "new = 1\n")
    page.wait_for_function("() => localStorage.getItem('draft:200') === 'new = 1\\n'")
    page.goto(page.url + f"?from={number}")
    ready(page)
    assert editor_text(page) == "old = 1\n"


def test_cases_come_in_while_it_is_judged(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, SLOW)
    send(page)
    page.wait_for_selector(".result[data-live] .dot.wrong_answer")
    assert page.locator(".result[data-live] .dot.waiting").count() > 0
    page.reload()
    assert page.locator(".result[data-live] .score").count() == 0, "how many passed is not known yet"
    page.wait_for_selector(".result:not([data-live]) .badge.wrong_answer")


def test_without_streams_it_asks_again_and_again(open_page):
    page = open_page("/problems/200")
    page.context.route("**/events", lambda route: route.abort())
    ready(page)
    write(page, P200.solution)
    assert submit(page).locator(".badge.accepted").count() > 0


def test_a_run_over_the_public_cases(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, P200.solution)
    result = submit(page, RUN)
    assert "accepted" in result.locator(".outcome").inner_text()
    assert "public only" in result.locator(".facts").inner_text()
    assert result.locator(".all-cases .dot").count() == len(P200.public)


def test_ctrl_enter_submits(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "by_keyboard = 1\n")
    with page.expect_response("**/problems/200/submissions") as answer:
        page.keyboard.press("ControlOrMeta+Enter")
    assert answer.value.status == 201


def test_what_is_too_long_is_said_before_it_is_sent(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "# " + "x" * 70_000)
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_selector("[data-error]:not([hidden])")
    assert "65536" in page.locator("[data-error]").inner_text()


def test_a_site_that_does_not_answer_is_said_and_loses_nothing(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "mine = 1\n")
    page.context.set_offline(True)
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_selector("[data-error]:not([hidden])")
    assert "could not be sent" in page.locator("[data-error]").inner_text()
    assert editor_text(page) == "mine = 1\n"
    assert page.get_by_role("button", name="Submit", exact=True).is_enabled()


def test_it_works_without_javascript(open_page):
    page = open_page("/problems/54", java_script_enabled=False)
    starter = survey().packages[54].starter
    assert page.locator("textarea[name=source]").input_value().strip() == starter.strip()
    page.goto(page.url.replace("/54", "/200"))
    page.fill("textarea[name=source]", P200.wrong["int64"].source)
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    page.wait_for_selector(".badge.wrong_answer", timeout=30_000)
    assert P200.wrong["int64"].diagnosis["en"] in page.locator(".diagnosis").inner_text()
    page.get_by_role("link", name="Open it in the editor").click()
    assert page.locator("textarea[name=source]").input_value().strip() == P200.wrong["int64"].source.strip()


def test_the_language_switch_keeps_the_place(open_page):
    page = open_page("/problems/200", "en-US")
    page.get_by_role("button", name="中文").click()
    assert page.url.endswith("/problems/200")
    assert P200.title["zh"] in page.locator("h1").inner_text()
    assert page.get_by_role("button", name="提交", exact=True).count() == 1


def test_the_theme_is_kept(open_page):
    page = open_page("/", color_scheme="light")
    paper = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    toggle = page.locator("[data-theme-toggle]")
    toggle.click()
    toggle.click()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor") != paper


@pytest.mark.parametrize(("path", "lang"), [("/problems/200", "en-US"), ("/submissions", "zh-CN")])
def test_everything_is_reached_by_keyboard(open_page, path, lang):
    page = open_page("/", lang)
    assert faults_of(page, page.url.rstrip("/") + path) == []


def test_escape_then_tab_leaves_the_editor_for_submit(open_page):
    page = open_page("/problems/200")
    ready(page)
    page.locator(".cm-content").focus()
    page.keyboard.press("Escape")  # then Tab leaves the editor instead of indenting
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Submit"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/",
            "/problems",
            "/problems/200",
            "/problems/201",
            "/chapters/17",
            "/submissions",
            "/search?q=page",
        ),
        "/chapters/17/files/minisgl/attention/fi.py",
    ],
)
def test_a_narrow_screen_needs_no_sideways_scrolling(open_page, path):
    page = open_page(path, "zh-CN")
    page.set_viewport_size({"width": 360, "height": 740})
    settle(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_no_policy_is_violated_on_any_page(open_page):
    page = open_page("/")
    page.add_init_script(
        "window.broken = [];"
        "document.addEventListener('securitypolicyviolation', e => broken.push(e.violatedDirective))"
    )
    for path in ("/", "/problems", "/problems/201", "/chapters/17", "/submissions"):
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
        settle(page)
        assert page.evaluate("() => window.broken") == []


def test_a_running_submission_is_cancelled_by_its_button(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, SLOW)
    result = send(page)
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("[data-result] .badge.cancelled")
    assert page.url.endswith("/problems/200")
    number = result.get_attribute("data-submission")
    row = page.locator("[data-history] tr", has=page.locator(f'a[href="/submissions/{number}"]'))
    row.locator(".badge.cancelled").wait_for()


def test_a_slash_goes_to_the_search_and_types_in_the_editor(open_page):
    page = open_page("/problems/200")
    ready(page)
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.type") == "search"
    page.keyboard.type("radix")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=radix")
    page.goto(page.url.partition("/search")[0] + "/problems/200")
    ready(page)
    write(page, "a = 1 ")
    page.keyboard.type("/ 2")
    assert editor_text(page) == "a = 1 / 2"
