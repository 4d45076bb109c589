"""Sending from the problem page: what becomes of a press on Submit is always seen."""

from __future__ import annotations

import json

import pytest
from browser_steps import SUBMIT, ready, send, submit, write

from judge.packages import survey

pytestmark = pytest.mark.browser
P200 = survey().packages[200]
REFUSED = "Too many requests. Wait a little."


def focused(page):
    return page.evaluate("() => document.activeElement.textContent.trim()")


def test_a_refusal_is_shown_and_the_next_press_is_taken(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "x = 1\n")
    page.context.route(
        "**/problems/200/submissions",
        lambda route: route.fulfill(
            status=429, content_type="application/json", body=json.dumps({"error": REFUSED})
        ),
    )
    with pytest.raises(AssertionError, match=REFUSED):
        send(page)
    assert page.locator("[data-error]").is_visible()
    page.context.unroute("**/problems/200/submissions")
    submit(page)
    assert page.locator("[data-error]").is_hidden()


@pytest.mark.parametrize("body", ["", "<h1>a proxy says no</h1>", "{}"])
def test_an_answer_that_is_none_is_told(open_page, body):
    page = open_page("/problems/200")
    ready(page)
    page.context.route("**/problems/200/submissions", lambda route: route.fulfill(status=502, body=body))
    with pytest.raises(AssertionError, match="could not be sent"):
        send(page)


def test_what_was_taken_but_cannot_be_shown_is_not_called_lost(open_page):
    page = open_page("/problems/200")
    ready(page)
    page.context.route("**/submissions/*/fragment", lambda route: route.abort())
    with pytest.raises(AssertionError, match="It was sent, but"):
        send(page)


def test_a_second_press_while_one_is_on_its_way_sends_nothing_twice(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, "twice = 1\n")
    held = []

    def hold(route):
        if route.request.method == "POST":
            held.append(route)
        else:  # the list of what was sent
            route.continue_()

    page.context.route("**/problems/200/submissions", hold)
    button = page.get_by_role("button", name=SUBMIT)
    button.focus()
    for key in ("Enter", "Enter", "ControlOrMeta+Enter"):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    assert len(held) == 1
    with page.expect_response("**/submissions/*/fragment"):
        held[0].continue_()
    assert focused(page) == "Submit", "the button keeps the focus"
    page.wait_for_function("() => !document.querySelector('#submit [aria-disabled=true]')")
    assert len(held) == 1


def test_next_problem_stands_in_the_live_result(open_page):
    page = open_page("/problems/200")
    ready(page)
    write(page, P200.solution)
    submit(page).get_by_role("link", name="Next problem:").click()
    page.wait_for_url("**/problems/201")


@pytest.mark.parametrize(
    ("lang", "choose", "other"),
    [("en-US", "Choose a file …", "Choose another file …"), ("zh-CN", "选择文件…", "换一个文件…")],
)
def test_a_file_is_chosen_in_the_pages_language_and_taken_back(open_page, tmp_path, lang, choose, other):
    page = open_page("/problems/200", lang)
    ready(page)
    write(page, "typed = 1\n")
    face, name = page.locator(".own-file .face"), page.locator(".own-file .name")
    assert face.inner_text() == choose
    (tmp_path / "mine.py").write_text("chosen = 1\n", "utf-8")
    page.locator("input[type=file]").set_input_files(tmp_path / "mine.py")
    assert (face.inner_text(), name.inner_text()) == (other, "mine.py")
    page.locator("[data-no-file]").click()
    assert (face.inner_text(), name.inner_text()) == (choose, "")
    page.locator("input[type=file]").set_input_files(tmp_path / "mine.py")
    number = submit(page).get_attribute("data-submission")
    assert face.inner_text() == choose, "the next press sends the editor's text again"
    page.goto(page.url.partition("/problems")[0] + f"/submissions/{number}")
    assert "chosen = 1" in page.locator("pre.numbered").inner_text()
