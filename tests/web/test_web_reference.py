"""The reference and the known mistakes: for those who solved the problem, and nobody else."""

from __future__ import annotations

import re

import pytest

from judge.store import reading

PATH = "/problems/200/solution"


@pytest.fixture
def package(app):
    return app.extensions["course"].packages[200]


def some_line(source):
    """A line of the program as it stands on a page: one without quotes or operators that are coloured apart."""
    return max((line.split("#")[1].strip() for line in source.splitlines() if "# " in line), key=len)


@pytest.mark.parametrize(("lang", "words"), [("zh", "先把它做出来"), ("en", "Solve it first")])
def test_before_it_is_solved_the_page_says_what_to_do(browser, package, lang, words):
    browser.submit("x = 1")
    answer = browser.get(PATH, lang)
    assert answer.status_code == 404
    assert words in answer.text
    assert some_line(package.solution) not in answer.text
    assert PATH not in browser.get("/problems/200", lang).text


def test_a_run_or_anothers_success_opens_nothing(app, browser, package, judge_all):
    browser.submit(package.solution, public_only="1")
    app.extensions["course"].queue.submit(
        user="somebody", problem=200, version=package.version, source=package.solution.encode()
    )
    assert [v["status"] for v in judge_all()] == ["accepted", "accepted"]
    assert browser.get(PATH).status_code == 404


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_after_it_is_solved_everything_is_there(browser, package, judge_all, lang):
    number = browser.submit(package.solution)
    other = browser.submit("# mine\n" + package.solution)
    again = browser.submit(package.solution)
    judge_all()
    page = browser.get(PATH, lang)
    assert page.status_code == 200
    assert some_line(package.solution) in page.text
    for name, wrong in package.wrong.items():
        assert f'id="{name}"' in page.text
        assert f"#{wrong.section.partition('#')[2]}" in page.text
    for mine in (number, other):
        assert f'href="/submissions/{mine}"' in page.text
    assert 'class="button primary" href="/problems/201"' in page.text, "the next problem"
    assert f'href="/submissions/{again}"' not in page.text  # the same text, sent before
    for leads_there in ("/problems/200", f"/submissions/{number}"):
        assert PATH in browser.get(leads_there, lang).text


@pytest.mark.parametrize(("lang", "words"), [("zh", "下一题："), ("en", "Next problem:")])
def test_a_verdict_that_solves_leads_on_at_once(app, browser, package, judge_all, lang, words):
    """Also the piece of page that takes the place of the live view."""
    run, wrong = browser.submit(package.solution, public_only="1"), browser.submit("x = 1")
    number = browser.submit(package.solution)
    judge_all()
    following = app.extensions["course"].packages[201].title[lang]
    total = len(app.extensions["course"].packages)
    counted = f"1 of {total} solved" if lang == "en" else f"已解决 1 / {total}"
    for path in ("/problems/200", f"/submissions/{number}", f"/submissions/{number}/fragment"):
        page = browser.get(path, lang).text
        assert f"{words} 201 {following}" in page
        assert counted in page
    for other in (run, wrong):
        assert words not in browser.get(f"/submissions/{other}/fragment", lang).text


def test_whoever_solved_the_last_one_is_told_so(app, browser, package, judge_all):
    services = app.extensions["course"]
    for number in [n for n in services.packages if n != 200]:
        del services.packages[number]
    number = browser.submit(package.solution)
    judge_all()
    page = browser.get(f"/submissions/{number}/fragment").text
    assert "Everything is solved" in page
    assert "Next problem" not in page


def test_a_wrong_verdict_does_not_lead_there(browser, package, judge_all):
    browser.submit(package.solution)
    number = browser.submit("x = 1")
    judge_all()
    assert PATH not in browser.get(f"/submissions/{number}").text


def test_every_problem_has_such_a_page(app, browser, monkeypatch):
    from web.problems import views

    monkeypatch.setattr(views, "may_see_reference", lambda package: True)
    for number in app.extensions["course"].packages:
        assert browser.get(f"/problems/{number}/solution").status_code == 200


def test_a_problem_that_is_not_there_is_a_404_page(browser):
    assert "There is no such page" in browser.get("/problems/999/solution").text


def test_who_solved_what_is_told_by_the_store(app, package):
    services = app.extensions["course"]
    with services.store.read() as session:
        assert not reading.is_solved(session, "local", 200)
        assert reading.accepted_sources(session, "local", 200) == []


def test_diagnoses_are_plain_text(app):
    """A verdict shows them as they are, on the site and in a terminal: marks of Markdown would stand there."""
    for package in app.extensions["course"].packages.values():
        for wrong in package.wrong.values():
            for text in (wrong.diagnosis["zh"], wrong.diagnosis["en"]):
                assert not re.search(r"`|\*\*\w|\]\(", text), (package.id, wrong.name, text)
