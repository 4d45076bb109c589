"""A real site in processes of its own, and a real Chromium that opens its start address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_site import Site, chromium_running, fresh_pages, running_site


# Once a file, not once a session: while Playwright runs, this thread has an event loop, and no later test could start one.
@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A file that has nothing judged says `ONLY = "web"`: half of what a site costs is its judge."""
    with running_site(tmp_path_factory.mktemp("site"), getattr(request.module, "ONLY", "")) as site:
        yield site


@pytest.fixture(scope="module")
def chromium(site: Site) -> Iterator[Any]:
    with chromium_running() as browser:
        yield browser


@pytest.fixture
def open_page(site: Site, chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page in a fresh profile that has the cookie of the start address. Errors of scripts fail the test."""
    with fresh_pages(chromium) as fresh:

        def opened(path: str = "/", lang: str = "en-US", **options: Any) -> Any:
            page = fresh(lang, **{"viewport": {"width": 1440, "height": 900}, **options})
            # For the cookie alone: the page that it leads to is of no use here.
            assert page.context.request.get(site.start).ok
            page.goto(site.base + path)
            return page

        yield opened
