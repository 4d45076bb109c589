"""Every page with Tab alone: all that can be used is reached, in the order of the page, is seen to have the focus, and lets
go of it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser_school import School, make_school, wait_until_judged
from browser_site import Site, chromium_running, fresh_pages, running_site
from browser_steps import enter_account, ready
from browser_walk import faults_of

from tests.web.accounts.conftest import PASSWORD
from web.accounts.tables import Role
from web.app import create_app
from web.settings import Settings

pytestmark = pytest.mark.browser
# Pieces of pages, files, what programs and probes ask; and pages that only lead elsewhere.
NO_PAGES = re.compile(
    r"\.csv$|^/static/|^/healthz|^/metrics|^/api/v1/|/(events|state|fragment)$|^/enter|^/login/oidc"
)
PARTS = {"submissions.history"}
# Their forms are those of /register; a start address or a link is needed to see them.
ELSEWHERE = {"accounts.set_up", "joining.show"}


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, School, Path]]:
    data = tmp_path_factory.mktemp("school")
    made = make_school(data)
    with running_site(data, COURSE_ACCOUNTS="password", COURSE_REGISTRATION="link") as site:
        wait_until_judged(data)
        yield site, made, data


@pytest.fixture(scope="module")
def browser(school: object) -> Iterator[Any]:
    with chromium_running() as browser:
        yield browser


@pytest.fixture
def fresh(browser: Any) -> Iterator[Any]:
    with fresh_pages(browser) as opened:
        yield opened


@pytest.mark.parametrize("role", [Role.LEARNER, Role.TEACHER, Role.ADMIN])
def test_every_page_is_walked_with_tab_alone(school, fresh, role):
    site, made, _ = school
    page = fresh(viewport={"width": 1440, "height": 900})
    enter_account(page, site.base, made.logins[role], PASSWORD)
    shared = set(made.pages[Role.LEARNER]) if role is Role.TEACHER else set()
    paths = [path for path in made.pages[role] if path not in shared or path.startswith("/classes")]
    assert [fault for path in paths for fault in faults_of(page, site.base + path)] == []


def test_strangers_pages_are_walked_with_tab_alone(school, fresh):
    page = fresh()
    site = school[0]
    assert [f for path in ("/login", "/register") for f in faults_of(page, site.base + path)] == []


def test_every_page_there_is_is_among_those(school):
    _, made, data = school
    app = create_app(Settings(data_dir=data, accounts="password", registration="open"))
    visited = set()
    addresses = app.url_map.bind("localhost")
    for path in [
        "/login",
        "/register",
        *(p for of in made.pages.values() for p in of if p != "/no/such/page"),
    ]:
        visited.add(addresses.match(urlsplit(path).path)[0])
    rules = [
        rule for rule in app.url_map.iter_rules() if "GET" in rule.methods and not NO_PAGES.search(rule.rule)
    ]
    app.extensions["course"].store.close()
    assert {rule.endpoint for rule in rules} - visited - PARTS - ELSEWHERE == set()


def test_the_skip_link_skips(school, fresh):
    site, made, _ = school
    page = fresh()
    enter_account(page, site.base, made.logins[Role.LEARNER], PASSWORD)
    for path in ("/", "/problems", "/chapters/17"):
        page.goto(site.base + path)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.querySelector('main').contains(document.activeElement)"), path


def test_the_editor_says_how_to_leave_it_and_the_list_of_keys_gives_the_focus_back(school, fresh):
    site, made, _ = school
    page = fresh()
    enter_account(page, site.base, made.logins[Role.LEARNER], PASSWORD)
    page.goto(f"{site.base}/problems/40")
    ready(page)
    page.locator(".cm-content").focus()
    described = page.locator(".cm-content").get_attribute("aria-describedby")
    assert page.locator(f"#{described}").inner_text().split() == ["Esc", "Tab", "leave", "the", "editor"]
    button = page.get_by_role("button", name="Keys")
    button.focus()
    for key in ("Enter", "Escape"):
        page.keyboard.press(key)
    assert not page.get_by_role("dialog").is_visible()
    assert page.evaluate("() => document.activeElement.hasAttribute('data-help-open')")


def test_what_is_shown_once_is_copied_by_keyboard(school, fresh):
    site, made, _ = school
    page = fresh()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    enter_account(page, site.base, made.logins[Role.TEACHER], PASSWORD)
    page.goto(f"{site.base}/account/tokens")
    page.fill("#name", "laptop")
    page.press("#name", "Enter")
    page.get_by_role("button", name="Copy the token").focus()
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("Copied", exact=True).wait_for()
    shown = page.locator("[data-copy]").inner_text()
    assert page.evaluate("() => navigator.clipboard.readText()") == shown


def test_where_there_is_no_clipboard_it_is_copied_all_the_same(school, fresh):
    """Browsers give pages that did not come by HTTPS none."""
    site, made, _ = school
    page = fresh("zh-CN")
    page.add_init_script("delete Navigator.prototype.clipboard")
    enter_account(page, site.base, made.logins[Role.TEACHER], PASSWORD)
    page.goto(f"{site.base}/account/tokens")
    page.fill("#name", "laptop")
    page.press("#name", "Enter")
    page.get_by_role("button", name="复制令牌").press("Enter")
    page.get_by_text("已复制", exact=True).wait_for()
    shown = page.locator("[data-copy]").inner_text()
    page.fill("#name", "")
    page.focus("#name")
    page.keyboard.press("ControlOrMeta+V")
    assert page.input_value("#name") == shown[: len(page.input_value("#name"))] != ""
