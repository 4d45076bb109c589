"""What a person does on the problem page, as functions of a Playwright page."""

from __future__ import annotations

import re
from typing import Any

SUBMIT = re.compile("^(Submit|提交)$")
RUN = re.compile("^(Run public cases only|只跑公开用例)$")


def ready(page: Any) -> None:
    """Wait until the editor has taken the place of the text area."""
    page.wait_for_selector("[data-editor][data-ready]")


def settle(page: Any) -> None:
    """Wait until scripts have done what they do at once: a page counts as loaded after its own, an editor comes later."""
    page.wait_for_load_state("load")
    if page.locator("[data-editor]").count():
        ready(page)


def write(page: Any, source: str) -> None:
    """Put `source` into the editor in place of what is there, as a person would paste it."""
    page.click(".cm-content")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(source)


def editor_text(page: Any) -> str:
    return page.evaluate(
        "() => [...document.querySelectorAll('.cm-line')].map(l => l.textContent).join('\\n')"
    )


def send(page: Any, button: re.Pattern[str] = SUBMIT) -> Any:
    """Press the button; returns the result of this very submission, maybe still live. Fails with what the page says if it
    was not taken."""
    shown = page.locator("[data-result] .result")
    before = shown.get_attribute("data-submission") if shown.count() else "0"
    page.get_by_role("button", name=button).click()
    said = page.wait_for_function(
        """before => {
          const error = document.querySelector("[data-error]:not([hidden])");
          if (error) return error.textContent;
          const result = document.querySelector("[data-result] .result");
          return result && result.dataset.submission !== before && "taken";
        }""",
        arg=before,
    ).json_value()
    assert said == "taken", f"the page refuses: {said}"
    return shown


def submit(page: Any, button: re.Pattern[str] = SUBMIT) -> Any:
    """Press the button and wait for the verdict of this very submission."""
    result = send(page, button)
    page.wait_for_selector("[data-result] .result:not([data-live])")
    return result


def enter_account(page: Any, base: str, login: str, password: str) -> None:
    """Sign in by the form."""
    page.goto(f"{base}/login")
    page.fill("#login", login)
    page.fill("#password", password)
    page.press("#password", "Enter")
    page.wait_for_url(lambda url: "/login" not in url)
