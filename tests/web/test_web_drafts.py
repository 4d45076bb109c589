"""Drafts on the server: kept, and never replaced by somebody who has not seen what they replace."""

from __future__ import annotations

import io
import threading

import pytest

from web.drafts.keeping import NewerDraft, find_draft, save_draft
from web.drafts.tables import Draft

PATH = "/problems/200/draft"
JSON = {"Accept": "application/json"}


@pytest.fixture
def put(browser):
    def send(text, seen, path=PATH, **more):
        extra = more.pop("fields", None) or {"csrf_token": browser.csrf()}
        data = {"seen": str(seen), **extra}
        if text is not None:
            data["text"] = (io.BytesIO(text), "draft.py")
        headers = {"Origin": "http://127.0.0.1:8000", **JSON, **more.pop("headers", {})}
        return browser.client.put(path, base_url="http://127.0.0.1:8000", data=data, headers=headers, **more)

    return send


def test_a_draft_is_kept_byte_for_byte_and_opens_in_the_editor(app, browser, put):
    text = "\ufeffmine = '中文 🎉'\r\n\tx\n".encode()
    answer = put(text, 0)
    assert (answer.status_code, answer.json["revision"]) == (200, 1)
    with app.extensions["course"].store.read() as session:
        assert find_draft(session, "local", 200).text == text
    page = browser.get("/problems/200").text
    assert "mine = &#39;中文 🎉&#39;" in page.split("<textarea")[1].split("</textarea>")[0]
    assert 'data-revision="1"' in page
    assert "mine = " not in browser.get("/problems/201").text


def test_each_change_is_a_revision_and_the_same_text_is_none(put):
    assert [put(t, n).json["revision"] for n, t in enumerate((b"a", b"b", b""))] == [1, 2, 3]
    assert put(b"", 3).json["revision"] == 3
    assert put(b"", 1).json["revision"] == 3  # an old window that has the same text loses nothing


def test_an_older_window_does_not_replace_a_newer_draft(app, put):
    put(b"first", 0)
    put(b"second", 1)
    for seen in (0, 1, 7):
        answer = put(b"old window", seen)
        assert answer.status_code == 409
        assert (answer.json["revision"], answer.json["text"]) == (2, "second")
    assert put(b"old window", 2).json["revision"] == 3  # its reader was asked, and chose


def test_the_starter_restored_is_newer_than_the_text_before(app, browser, put):
    put(b"first", 0)
    assert put(None, 1).json["revision"] == 2
    answer = put(b"old window", 1)
    assert (answer.status_code, answer.json["text"]) == (409, app.extensions["course"].packages[200].starter)
    assert "first" not in browser.get("/problems/200").text.split("<textarea")[1].split("</textarea>")[0]


def test_a_text_that_was_sent_goes_before_the_draft(browser, put):
    put(b"draft = 1", 0)
    number = browser.submit("sent = 1")
    page = browser.get(f"/problems/200?from={number}").text
    assert "sent = 1" in page.split("<textarea")[1].split("</textarea>")[0]
    assert 'data-fixed="yes"' in page
    assert 'data-fixed=""' in browser.get("/problems/200").text


@pytest.mark.parametrize(("size", "status"), [(64 * 1024, 200), (64 * 1024 + 1, 413)])
def test_what_could_not_be_submitted_is_no_draft(put, size, status):
    answer = put(b"x" * size, 0)
    assert answer.status_code == status
    assert status == 200 or "65536" in answer.json["error"]


@pytest.mark.parametrize("seen", ["", "-1", "x", "1.5", "9" * 20, "１"])
def test_a_revision_that_is_none_is_refused(put, seen):
    assert put(b"x", seen).status_code == 400


def test_only_our_own_pages_save_and_only_to_problems(browser, put, client):
    assert put(b"x", 0, fields={"csrf_token": "wrong"}).status_code == 400
    assert put(b"x", 0, headers={"Origin": "http://evil.example"}).status_code == 403
    assert put(b"x", 0, path="/problems/999/draft").status_code == 404
    client.delete_cookie("course_8000", domain="127.0.0.1")
    assert put(b"x", 0, fields={"csrf_token": "x"}).status_code in (400, 401, 403)


def test_anothers_draft_is_not_mine(app, browser, put):
    with app.extensions["course"].store.write() as session:
        save_draft(session, "somebody", 200, b"theirs = 1", 0)
    assert "theirs" not in browser.get("/problems/200").text
    assert put(b"mine", 0).json["revision"] == 1


def test_windows_that_save_at_the_same_time_do_not_lose_each_others_text(app):
    store, won, lost = app.extensions["course"].store, [], []

    def save(name: str) -> None:
        try:
            with store.write() as session:
                won.append(save_draft(session, "local", 200, name.encode(), 0).text)
        except NewerDraft as newer:
            lost.append(newer.kept.text)

    threads = [threading.Thread(target=save, args=(f"window {n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert lost == won * 5
    with store.read() as session:
        assert session.get(Draft, ("local", 200)).text == won[0]
