"""Four stories, walked in a real browser on a site with accounts: a new learner, a teacher, an administrator, a learner
on a phone who reads Chinese. They follow each other on one site, as they would in a school."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_site import Site, chromium_running, fresh_pages, running_site
from browser_steps import editor_text, enter_account, ready, submit, write

from judge.packages import survey

pytestmark = pytest.mark.browser
P40 = survey().packages[40]
PASSWORD = "a password of one's own"
PHONE = {"width": 390, "height": 844}
# What a reader with a screen reader could not do without; "moderate" ones are looked at by eye.
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {"COURSE_ACCOUNTS": "password", "COURSE_REGISTRATION": "open"}
    with running_site(tmp_path_factory.mktemp("school"), **settings) as site:
        yield site


@pytest.fixture(scope="module")
def browser(school: Site) -> Iterator[Any]:
    with chromium_running() as browser:
        yield browser


@pytest.fixture
def fresh(browser: Any) -> Iterator[Any]:
    with fresh_pages(browser) as opened:
        yield opened


def sign_in(page: Any, site: Site, login: str, password: str = PASSWORD) -> None:
    enter_account(page, site.base, login, password)


def make_account(page: Any, login: str, name: str) -> None:
    page.fill("#login", login)
    page.fill("#name", name)
    page.fill("#new", PASSWORD)
    page.fill("#again", PASSWORD)
    page.press("#again", "Enter")
    page.get_by_role("heading", level=1).wait_for()


def assert_accessible(page: Any) -> None:
    """No violation of a serious kind, by axe."""
    found = Axe().run(page).response["violations"]
    serious = [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found if v["impact"] in SERIOUS]
    assert serious == [], page.url


def test_1_the_first_administrator_makes_a_teacher(school, fresh):
    page = fresh()
    page.goto(school.start)
    make_account(page, "root", "Root")
    page.goto(f"{school.base}/admin/accounts")
    page.fill("#new-login", "tess")
    page.fill("#new-name", "Tess Teacher")
    page.get_by_role("button", name="Create the account").click()
    password = page.locator("code.password").inner_text()
    assert_accessible(page)
    teacher = fresh()
    sign_in(teacher, school, "tess", password)
    assert teacher.url.endswith("/account/password")
    teacher.fill("#new", PASSWORD)
    teacher.fill("#again", PASSWORD)
    teacher.press("#again", "Enter")
    teacher.wait_for_url("**/account")
    assert "The password is changed" in teacher.locator("main").inner_text()


def test_2_a_new_learner_solves_a_problem_after_one_wrong_try(school, fresh):
    page = fresh()
    page.goto(school.base)
    assert_accessible(page)
    page.get_by_role("link", name="Create an account").click()
    make_account(page, "ada", "Ada")
    assert_accessible(page)
    page.get_by_role("link", name="Down to whole pages").first.click()
    ready(page)
    write(page, P40.wrong["align_up"].source)
    result = submit(page)
    assert "wrong answer" in result.inner_text()
    why = result.locator(".diagnosis").inner_text()
    assert "your output is exactly what this program gives" in why.lower()
    assert_accessible(page)
    write(page, P40.solution)
    result = submit(page)
    assert "accepted" in result.inner_text()
    page.get_by_role("link", name="See the reference").first.click()
    assert "align_down" in page.locator("main").inner_text()
    page.goto(school.base)
    assert "solved" in page.get_by_role("listitem").filter(has_text="Down to whole pages").first.inner_text()


def test_3_a_teacher_makes_a_class_of_thirty_and_exports_its_grades(school, fresh, tmp_path):
    page = fresh()
    sign_in(page, school, "tess")
    page.goto(f"{school.base}/classes/new")
    page.fill("#name", "推理引擎 2026")
    page.press("#name", "Enter")
    page.wait_for_url("**/classes/1")
    page.get_by_role("link", name="Add learners").click()
    roster = tmp_path / "roster.csv"
    rows = "".join(f"2026{i:03},学生{i}\r\n" for i in range(30))
    roster.write_bytes(f"学号,姓名\r\n{rows}一行坏的\r\n".encode("gbk"))
    page.set_input_files("#roster-file", str(roster))
    page.get_by_role("button", name="Read it").click()
    assert "1 line cannot be taken" in page.locator("main").inner_text()
    page.get_by_role("button", name="Import 30 people").click()
    passwords = page.locator("code.password").all_inner_texts()
    assert len(passwords) == 30
    assert_accessible(page)
    page.goto(f"{school.base}/classes/1/people")
    assert_accessible(page)

    page.goto(f"{school.base}/classes/1/assignments/new")
    page.fill("#title", "第一次作业")
    page.get_by_text("Chapter 1 4", exact=True).click()
    page.get_by_label("40 Down to whole pages").check()
    assert_accessible(page)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/assignments/1")

    learner = fresh()
    sign_in(learner, school, "2026007", passwords[7])
    learner.fill("#new", PASSWORD)
    learner.fill("#again", PASSWORD)
    learner.press("#again", "Enter")
    learner.wait_for_url("**/account")
    learner.goto(f"{school.base}/problems/40")
    ready(learner)
    write(learner, P40.solution)
    assert "accepted" in submit(learner).inner_text()

    page.get_by_role("link", name="Grade book").click()
    row = page.get_by_role("row").filter(has_text="2026007")
    assert "10 / 10" in row.inner_text()
    assert_accessible(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="As CSV").click()
    text = download.value.path().read_bytes().decode("utf-8-sig")
    table = {row[0]: row for row in csv.reader(io.StringIO(text))}
    assert len(table) == 31
    assert table["2026007"][1:4] == ["学生7", "10.0", "10.0"]
    row.get_by_role("link", name="solved").click()
    page.locator("table.history a").first.click()
    assert "align_down" in page.locator("pre.code").inner_text()
    assert_accessible(page)


def test_4_an_administrator_has_a_problem_judged_again(school, fresh):
    page = fresh()
    sign_in(page, school, "root")
    page.goto(f"{school.base}/admin/packages")
    page.get_by_role("row").filter(has_text="Down to whole pages").get_by_role("button").click()
    assert "3 submissions are judged again." in page.locator("main").inner_text()
    page.wait_for_function("() => document.querySelector('main').innerText.includes('Nothing waits')")
    assert_accessible(page)
    page.goto(f"{school.base}/admin/submissions/2")
    rows = page.get_by_role("row").filter(has_text="accepted")
    assert rows.count() == 2
    assert "the same" in rows.nth(1).inner_text()
    assert "counts" in rows.nth(1).inner_text()
    for path in ("/admin", "/admin/audit"):
        page.goto(school.base + path)
        assert_accessible(page)


def test_5_a_learner_on_a_phone_reads_chinese(school, fresh):
    page = fresh("zh-CN", viewport=PHONE, has_touch=True)
    sign_in(page, school, "2026007")
    page.get_by_role("link", name="班级", exact=True).click()
    page.get_by_role("link", name="推理引擎 2026").click()
    page.get_by_role("link", name="第一次作业").click()
    assert "截止时间" in page.locator("main").inner_text()
    assert_accessible(page)
    page.get_by_role("link", name="向下取整到整页").click()
    ready(page)
    width = page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= PHONE["width"], "nothing is to be scrolled sideways"
    write(page, P40.wrong["remainder"].source)
    result = submit(page)
    assert "答案错误" in result.inner_text()
    assert result.locator(".diagnosis").count() == 1
    assert_accessible(page)


def test_6_it_works_without_scripts_and_without_a_mouse(school, fresh):
    page = fresh(java_script_enabled=False)
    sign_in(page, school, "ada")
    page.goto(f"{school.base}/problems/40")
    page.fill("textarea[name=source]", P40.solution)
    page.get_by_role("button", name="Submit").click()
    for _ in range(30):
        if "accepted" in page.locator("main").inner_text():
            break
        page.wait_for_timeout(1000)
        page.reload()
    assert "accepted" in page.locator("main").inner_text()


def test_7_two_accounts_on_one_device_have_drafts_of_their_own(school, fresh):
    page = fresh()
    sign_in(page, school, "ada")
    page.goto(f"{school.base}/problems/41")
    ready(page)
    write(page, "ada_wrote_this = 1\n")
    page.wait_for_function("() => Object.values(localStorage).some(v => v.includes('ada_wrote_this'))")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    sign_in(page, school, "tess")
    page.goto(f"{school.base}/problems/41")
    ready(page)
    assert "ada_wrote_this" not in editor_text(page)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
    sign_in(page, school, "ada")
    page.goto(f"{school.base}/problems/41")
    ready(page)
    assert "ada_wrote_this" in editor_text(page)
