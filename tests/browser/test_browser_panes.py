"""The problem page's panes, keys and hints."""

from __future__ import annotations

import pytest
from browser_steps import ready

pytestmark = pytest.mark.browser


def width(page, selector):
    return page.locator(selector).bounding_box()["width"]


def opened(open_page, size=(1440, 900)):
    page = open_page("/problems/200")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    ready(page)
    return page


def test_the_line_is_dragged_and_remembered(open_page):
    page = opened(open_page)
    line = page.get_by_role("separator", name="Width of the statement")
    before = width(page, "#pane-statement")
    box = line.bounding_box()
    page.mouse.move(box["x"] + 3, 400)
    page.mouse.down()
    page.mouse.move(box["x"] - 197, 400, steps=4)
    page.mouse.up()
    after = width(page, "#pane-statement")
    assert before - after == pytest.approx(200, abs=8)
    page.reload()
    ready(page)
    assert width(page, "#pane-statement") == pytest.approx(after, abs=2)


def test_the_line_is_moved_with_the_keyboard(open_page):
    page = opened(open_page)
    line = page.get_by_role("separator", name="Width of the statement")
    assert line.get_attribute("aria-orientation") == "vertical"
    start = int(line.get_attribute("aria-valuenow"))
    before = width(page, "#pane-statement")
    line.focus()
    page.keyboard.press("ArrowRight")
    assert int(line.get_attribute("aria-valuenow")) == start + 2
    assert width(page, "#pane-statement") > before
    page.keyboard.press("Home")
    assert line.get_attribute("aria-valuenow") == line.get_attribute("aria-valuemin")
    page.keyboard.press("End")
    assert line.get_attribute("aria-valuenow") == line.get_attribute("aria-valuemax")
    page.keyboard.press("Enter")
    assert width(page, "#pane-statement") == pytest.approx(before, abs=1)
    assert page.evaluate("() => localStorage.getItem('panes')") == "{}"


@pytest.mark.parametrize(("size", "way"), [((1440, 900), "horizontal"), ((1920, 1000), "vertical")])
def test_the_editor_has_a_line_of_its_own(open_page, size, way):
    page = opened(open_page, size)
    line = page.get_by_role("separator", name="Size of the editor")
    assert line.get_attribute("aria-orientation") == way
    side = "height" if way == "horizontal" else "width"
    before = page.locator("[data-editor]").bounding_box()[side]
    line.focus()
    page.keyboard.press("Shift+ArrowDown" if way == "horizontal" else "Shift+ArrowRight")
    assert page.locator("[data-editor]").bounding_box()[side] > before + 40
    assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0]


def test_on_a_phone_the_panes_are_stacked_and_have_no_lines(open_page):
    page = opened(open_page, (390, 844))
    assert page.get_by_role("separator").count() == 0
    statement, solution = (page.locator(s).bounding_box() for s in ("#pane-statement", ".pane.solution"))
    assert solution["y"] >= statement["y"] + statement["height"]
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_without_scripts_there_is_no_line_to_move(open_page):
    page = open_page("/problems/200", java_script_enabled=False)
    assert page.get_by_role("separator").count() == 0
    statement, solution = (page.locator(s).bounding_box() for s in ("#pane-statement", ".pane.solution"))
    assert solution["x"] >= statement["x"] + statement["width"]


def test_hints_open_one_after_the_other(open_page):
    page = opened(open_page)
    hints = page.locator("details.hint")
    assert [hints.nth(i).is_visible() for i in range(hints.count())] == [True, False, False]
    hints.nth(0).locator("summary").click()
    hints.nth(1).wait_for(state="visible")
    assert not hints.nth(2).is_visible()
    page.keyboard.press("h")
    hints.nth(2).wait_for(state="visible")
    assert hints.nth(1).evaluate("e => e.open")


def test_keys_and_their_list(open_page):
    page = opened(open_page)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    assert "run the public cases only" in dialog.inner_text()
    page.keyboard.press("e")  # belongs to the dialog
    assert dialog.is_visible()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")  # the browser closes it when it comes to it
    page.keyboard.press("e")
    assert page.evaluate("() => document.activeElement.className").startswith("cm-content")
    with page.expect_response("**/problems/200/submissions") as answer:
        page.keyboard.press("ControlOrMeta+Shift+Enter")
    assert answer.value.status == 201
    page.locator("[data-result] .tag", has_text="public only").wait_for()


def test_single_keys_can_be_switched_off(open_page):
    page = opened(open_page)
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Single letters").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("e")
    page.keyboard.press("?")
    assert not page.evaluate("() => document.activeElement.className").startswith("cm-content")
    assert page.get_by_role("dialog").count() == 0
    page.reload()
    ready(page)
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.type") != "search"
