"""Problems in a real Chromium: the reference is accepted, known mistakes are named, the history stays. All problems are for
`tools/problems.py verify`; here are those with a picture, with all their mistakes, and one each of a file, of calls and of the
track, with a mistake for each section: what a page says of the others is for test_web_result.py."""

from __future__ import annotations

from typing import Any

import pytest
from browser_steps import ready, submit, write

from judge.packages import survey

pytestmark = pytest.mark.browser
DRAWN = (200, 201)
PACKAGES = {n: p for n, p in survey().packages.items() if n in (*DRAWN, 74, 141, 302)}
MISTAKES = [(p.id, name) for p in PACKAGES.values() if p.id in DRAWN for name in p.wrong] + list(
    {
        (p.id, w.section): (p.id, w.name)
        for p in PACKAGES.values()
        if p.id not in DRAWN
        for w in p.wrong.values()
    }.values()
)


@pytest.mark.parametrize("problem", PACKAGES)
def test_the_reference_is_accepted_and_the_history_stays(open_page, problem):
    page = open_page(f"/problems/{problem}")
    ready(page)
    write(page, PACKAGES[problem].solution)
    result = submit(page)
    assert "accepted" in result.locator(".outcome").inner_text()
    number = result.get_attribute("data-submission")
    page.reload()
    row = page.locator("[data-history] tr", has=page.locator(f'a[href="/submissions/{number}"]'))
    assert "accepted" in row.inner_text()
    assert "accepted" in page.locator("[data-result] .outcome").inner_text()
    row.locator("a").click()
    assert (
        PACKAGES[problem].solution.strip().splitlines()[-1].strip()
        in page.locator("pre.numbered").inner_text()
    )
    page.goto(page.url.partition("/submissions")[0] + "/problems")
    assert "solved" in page.locator("tr", has_text=PACKAGES[problem].title["en"]).inner_text()


@pytest.fixture(scope="module")
def kept_pages(site, chromium):
    """Gives one page a problem, kept open as a learner keeps it, try after try; and what scripts failed with."""
    pages: dict[int, Any] = {}
    errors: list[str] = []

    def page_of(problem: int) -> Any:
        if problem not in pages:
            context = chromium.new_context(locale="zh-CN", viewport={"width": 1440, "height": 900})
            context.set_default_timeout(60_000)
            page = context.new_page()
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(site.start)
            page.goto(f"{site.base}/problems/{problem}")
            ready(page)
            pages[problem] = page
        return pages[problem]

    yield page_of, errors
    for page in pages.values():
        page.context.close()


@pytest.fixture
def solver(kept_pages):
    page_of, errors = kept_pages
    errors.clear()
    yield page_of
    assert errors == []


@pytest.mark.parametrize(("problem", "name"), MISTAKES, ids=[f"{p}-{n}" for p, n in MISTAKES])
def test_a_mistake_is_named(solver, problem, name):
    page, mistake = solver(problem), PACKAGES[problem].wrong[name]
    write(page, mistake.source)
    result = submit(page)
    assert result.locator(".outcome .badge").get_attribute("class").split()[1] == mistake.verdict
    findings = result.locator(".diagnosis .finding")
    assert mistake.diagnosis["zh"] in findings.first.inner_text()
    chapter, _, anchor = mistake.section.partition("#")
    link = findings.first.locator("a").get_attribute("href")
    page_of_it = f"/chapters/{int(chapter.removeprefix('ch'))}#{anchor}" if chapter != "f" else "/problems"
    assert link == page_of_it


@pytest.mark.parametrize("problem", DRAWN)
def test_the_counterexample_is_drawn(solver, problem):
    page = solver(problem)
    write(page, PACKAGES[problem].wrong["rows_by_enumeration"].source)
    result = submit(page)
    picture = result.locator(".counterexample figure")
    assert picture.locator("svg").count() == 3
    assert picture.locator(".box.differs").count() > 0
    assert picture.locator("text.cross").count() > 0
    assert result.locator(".counterexample mark").count() > 0


def test_the_link_of_a_diagnosis_leads_to_its_section(solver):
    page = solver(200)
    write(page, PACKAGES[200].wrong["last_page_len_modulo"].source)
    href = submit(page).locator(".finding a").first.get_attribute("href")
    tab = page.context.new_page()
    tab.goto(page.url.partition("/problems")[0] + href)
    assert tab.locator(f"#{href.partition('#')[2]}").is_visible()
    tab.close()


ODD = {
    "nothing": "None",
    "raises": "1 / 0",
    "a string": "'four tensors'",
    "three values": "(torch.zeros(2), torch.zeros(2), torch.zeros(2))",
    "two axes": "tuple(torch.zeros(2, 2, dtype=torch.int32) for _ in range(4))",
    "no axis": "tuple(torch.tensor(7, dtype=torch.int32) for _ in range(4))",
    "empty": "tuple(torch.zeros(0, dtype=torch.int32) for _ in range(4))",
    "not numbers": "tuple(torch.full((3,), float('nan')) for _ in range(4))",
    "far out": "tuple(torch.tensor([0, 2**31 - 1, -5], dtype=torch.int32) for _ in range(4))",
    "long": "tuple(torch.arange(3000, dtype=torch.int32) for _ in range(4))",
    "truth": "tuple(torch.tensor([True, False]) for _ in range(4))",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_shown_without_a_script_failing(solver, name):
    page = solver(200)
    write(page, f"import torch\ndef flashinfer_metadata(reqs, page_table, page_size): return {ODD[name]}\n")
    result = submit(page)
    status = result.locator(".outcome .badge").get_attribute("class").split()[1]
    assert status in ("wrong_answer", "runtime_error")
    for details in result.locator("details.case").all():
        details.locator("summary").click()
    for figure in result.locator("figure.picture").all():
        assert figure.get_attribute("data-drawn") == "yes"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1440
