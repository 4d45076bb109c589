"""A real site in processes of its own, and a real Chromium that opens its start address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_site import CHROMIUM, FLAGS, TIMEOUT_MS, Site, running_site


# Once a file, not once a session: while Playwright runs, this thread has an event loop, and no later test could start one.
@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def chromium(site: Site) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(site: Site, chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page in a fresh profile that has been at the start address. Errors of scripts fail the test."""
    contexts, errors = [], []

    def opened(path: str = "/", lang: str = "en-US", **options: Any) -> Any:
        context = chromium.new_context(locale=lang, viewport={"width": 1440, "height": 900}, **options)
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(site.start)
        page.goto(site.base + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
