"""Who may talk to the site: the person at this machine, through our own pages."""

from __future__ import annotations

import pytest

BASE = "http://127.0.0.1:8000"
PAGES = [
    "/",
    "/problems",
    "/problems/200",
    "/chapters/17",
    "/submissions",
    "/submissions/1",
    "/submissions/1/events",
]


@pytest.mark.parametrize("path", PAGES)
def test_without_the_start_address_every_page_is_closed(client, path):
    answer = client.get(path, base_url=BASE, headers={"Accept-Language": "en"})
    assert answer.status_code == 403
    assert "enter?token=" in answer.text
    assert "make serve" in answer.text


def test_a_script_without_the_cookie_is_told_what_to_do(client):
    answer = client.get("/", base_url=BASE, headers={"Accept-Language": "en", "Accept": "application/json"})
    assert answer.status_code == 403
    assert "start address" in answer.json["error"]


@pytest.mark.parametrize("token", ["", "wrong", "a-token-for-test", "é"])
def test_a_wrong_token_opens_nothing(client, token):
    assert client.get("/enter", query_string={"token": token}, base_url=BASE).status_code == 403
    assert client.get("/", base_url=BASE).status_code == 403


def test_the_token_leaves_the_address_bar(client):
    answer = client.get("/enter?token=a-token-for-tests", base_url=BASE)
    assert (answer.status_code, answer.location) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:8000", "http://localhost:8000", "http://localhost", "http://[::1]:8000"]
)
def test_loopback_hosts_are_served(client, base):
    assert client.get("/enter?token=a-token-for-tests", base_url=base).status_code == 303


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[::1",
    ],
)
def test_other_hosts_are_refused_even_with_the_token(client, host):
    answer = client.get("/enter?token=a-token-for-tests", base_url=BASE, headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9000", "https://127.0.0.1:8000", ""]
)
def test_a_foreign_origin_is_refused(browser, origin):
    assert browser.get("/", headers={"Origin": origin}).status_code == 403
    fields = {"source": "x = 1"}
    assert browser.post("/problems/200/submissions", fields, headers={"Origin": origin}).status_code == 403
    assert "None yet" in browser.get("/submissions").text


def test_a_post_needs_an_origin(browser):
    data = {"source": "x = 1", "csrf_token": browser.csrf()}
    assert browser.client.post("/problems/200/submissions", base_url=BASE, data=data).status_code == 403


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_a_post_needs_the_csrf_token(browser, token):
    data = (
        {"source": "x = 1", "csrf_token": token}
        if token is not None
        else {"source": "x = 1", "csrf_token": []}
    )
    answer = browser.post("/problems/200/submissions", data)
    assert answer.status_code == 400
    assert "no longer valid" in answer.text


def test_a_csrf_token_of_another_session_is_refused(app, browser):
    other = app.test_client()
    other.get("/enter?token=a-token-for-tests", base_url=BASE)
    data = {"source": "x = 1", "csrf_token": browser.csrf()}
    assert (
        other.post(
            "/problems/200/submissions", base_url=BASE, data=data, headers={"Origin": BASE}
        ).status_code
        == 400
    )


def test_a_post_needs_the_session(app, browser):
    data = {"source": "x = 1", "csrf_token": browser.csrf()}
    stranger = app.test_client()
    answer = stranger.post("/problems/200/submissions", base_url=BASE, data=data, headers={"Origin": BASE})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/problems/200", "/nothing-here"])
def test_headers(browser, path):
    headers = browser.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_pages_hold_no_inline_script_or_style(browser):
    for path in ("/", "/problems/200", "/chapters/17", "/submissions", "/nothing-here"):
        page = browser.get(path).text
        assert " style=" not in page
        assert "<style" not in page
        assert "onclick" not in page
        for tag in page.split("<script")[1:]:
            head = tag.partition(">")[0]
            assert "src=" in head or 'type="application/json"' in head


def test_the_session_survives_a_restart(app, browser, tmp_path):
    from web.app import create_app
    from web.settings import Settings

    cookie = browser.client.get_cookie("course_8000", domain="127.0.0.1")
    again = create_app(Settings(data_dir=tmp_path, token="another"))
    fresh = again.test_client()
    fresh.set_cookie("course_8000", cookie.value, domain="127.0.0.1")
    assert fresh.get("/", base_url=BASE).status_code == 200
    assert (tmp_path / "session.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "back", ["//evil.example", "/\\evil.example", "/\t/evil.example", "/\n/evil.example", "evil"]
)
def test_choosing_a_language_leads_nowhere_else(browser, back):
    answer = browser.post("/language", {"lang": "zh", "next": back})
    assert (answer.status_code, answer.location) == (303, "/")
