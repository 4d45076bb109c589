"""Taking a submission back: by its owner, before it has ended, with and without scripts."""

from __future__ import annotations

import pytest

JSON = {"Accept": "application/json"}


def status(browser, number):
    return browser.get(f"/submissions/{number}/state").json["status"]


@pytest.mark.parametrize(("lang", "words"), [("zh", "已取消"), ("en", "cancelled")])
def test_a_queued_one_is_cancelled_by_its_button(browser, judge_all, lang, words):
    number = browser.submit("x = 1")
    assert f'action="/submissions/{number}/cancel"' in browser.get(f"/submissions/{number}").text
    answer = browser.post(f"/submissions/{number}/cancel", {})
    assert (answer.status_code, answer.location) == (303, f"/submissions/{number}")
    assert judge_all() == []
    page = browser.get(f"/submissions/{number}", lang).text
    assert words in page
    assert "/cancel" not in page
    assert "http-equiv" not in page


def test_a_running_one_is_cancelled_and_its_stream_ends(app, browser):
    number = browser.submit("x = 1")
    queue = app.extensions["course"].queue
    queue.started(queue.claim("w"), 3)
    assert browser.post(f"/submissions/{number}/cancel", {}, headers=JSON).json == {"cancelled": True}
    assert browser.get(f"/submissions/{number}/events").text.rstrip().endswith("event: end\ndata: {}")


@pytest.mark.parametrize(("lang", "words"), [("zh", "来不及取消"), ("en", "Too late to cancel")])
def test_one_that_has_ended_keeps_its_verdict_and_says_so(browser, judge_all, lang, words):
    number = browser.submit("x = 1")
    judge_all()
    before = status(browser, number)
    answer = browser.post(f"/submissions/{number}/cancel", {}, lang)
    assert answer.status_code == 409
    assert words in answer.text
    assert browser.post(f"/submissions/{number}/cancel", {}, headers=JSON).json == {"cancelled": False}
    assert status(browser, number) == before


def test_anothers_cannot_be_cancelled_nor_can_one_that_is_not_there(app, browser):
    queue = app.extensions["course"].queue
    theirs = queue.submit(user="somebody", problem=200, version="0" * 16, source=b"x = 1")
    for number in (theirs, theirs + 1, 2**70):
        assert browser.post(f"/submissions/{number}/cancel", {}).status_code == 404
    assert queue.claim("w").submission == theirs


def test_a_stranger_cannot_cancel(browser, client):
    number = browser.submit("x = 1")
    path = f"/submissions/{number}/cancel"
    assert browser.post(path, {"csrf_token": "wrong"}).status_code == 400
    assert browser.post(path, {}, headers={"Origin": "http://evil.example"}).status_code == 403
    assert status(browser, number) == "queued"


def test_the_place_in_line_is_told(browser):
    first, second = browser.submit("x = 1"), browser.submit("x = 2")
    assert "next in line" in browser.get(f"/submissions/{first}").text
    assert "1 before it" in browser.get(f"/submissions/{second}").text
    browser.post(f"/submissions/{first}/cancel", {})
    assert browser.get(f"/submissions/{second}/state").json["ahead"] == 0
