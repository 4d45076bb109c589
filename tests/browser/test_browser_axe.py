"""What axe finds on the learner's pages, in both themes: nothing."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_steps import ready, settle, submit, write

from judge.packages import survey

pytestmark = pytest.mark.browser
P200 = survey().packages[200]
PAGES = [
    "/",
    "/problems",
    "/problems/200",
    "/problems/200/solution",
    "/problems/201/solution",
    "/problems/200/compare?old=1&new=2",
    "/chapters/10",
    "/chapters/17",
    "/chapters/17/files/minisgl/attention/fi.py",
    "/search?q=page",
    "/submissions",
    "/submissions/1",
    "/submissions/2",
]


@pytest.fixture(scope="module")
def solved(site, chromium):
    """Two submissions to problem 200: a mistake, and the reference."""
    context = chromium.new_context(locale="en-US")
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(site.start)
    page.goto(f"{site.base}/problems/200")
    ready(page)
    for source in (P200.wrong["rows_by_enumeration"].source, P200.solution):
        write(page, source)
        submit(page)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(solved, open_page, site, scheme):
    page = open_page("/", color_scheme=scheme, bypass_csp=True)  # axe is a script of the test's
    found = []
    for path in PAGES:
        assert page.goto(site.base + path).status == (404 if path == "/problems/201/solution" else 200)
        settle(page)
        # CodeMirror's scroller scrolls with its text, which has the focus.
        for fault in Axe().run(page, context={"exclude": [[".cm-scroller"]]}).response["violations"]:
            found.append(f"{path}: {fault['id']}: {fault['nodes'][0]['html'][:160]}")
    assert found == []
