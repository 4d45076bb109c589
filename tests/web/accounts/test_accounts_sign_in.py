"""Signing in and out, and who gets to see what."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.web.accounts.conftest import SITE
from web.accounts import passwords
from web.accounts.tables import Role, User

PASSWORD = "correct horse battery"


def test_a_stranger_is_sent_to_the_sign_in_page_and_back(visitor, person):
    person("ada")
    answer = visitor.get("/problems/200?from=3")
    assert answer.status_code == 303
    assert answer.location == "/login?next=/problems/200?from%3D3"
    answer = visitor.post("/login", {"login": " ADA ", "password": PASSWORD, "next": "/problems/200"})
    assert (answer.status_code, answer.location) == (303, "/problems/200")
    page = visitor.get("/problems/200").text
    assert "Ada" in page
    assert "Sign out" in page


@pytest.mark.parametrize(
    "path", ["/", "/problems", "/submissions", "/submissions/1", "/account", "/chapters/17"]
)
def test_nothing_is_shown_to_a_stranger(visitor, path):
    assert visitor.get(path).location.startswith("/login?next=")


def test_a_script_of_someone_signed_out_is_told_so(visitor):
    answer = visitor.get("/submissions/1/state", headers={"Accept": "application/json"})
    assert answer.status_code == 401
    assert "sign in" in answer.json["error"].lower()


HERE = {"Origin": SITE, "Accept-Language": "en"}


def test_what_was_sent_after_the_session_ended_is_told_with_a_way_back(visitor, person):
    person("ada")
    answer = visitor.client.post(
        "/problems/200/submissions",
        base_url=SITE,
        data={"source": "x"},
        headers={**HERE, "Referer": f"{SITE}/problems/200?from=3"},
    )
    assert answer.status_code == 401
    assert "What you sent was not taken." in answer.text
    link = html.unescape(re.search(r'href="(/login[^"]*)"', answer.text)[1])
    assert parse_qs(urlsplit(link).query) == {"next": ["/problems/200?from=3"]}
    form = re.search(r'id="next"[^>]*value="([^"]*)"', visitor.get(link).text)[1]
    assert visitor.sign_in("ada", next=html.unescape(form)).location == "/problems/200?from=3"


@pytest.mark.parametrize(
    "referer", ["", "http://evil.example/x", f"{SITE}.evil.example/x", f"{SITE}//evil.example", "::"]
)
def test_the_way_back_leads_to_no_other_site(visitor, referer):
    answer = visitor.client.post(
        "/problems/200/submissions", base_url=SITE, data={}, headers={**HERE, "Referer": referer}
    )
    assert re.search(r'href="/login"', answer.text)
    told = visitor.client.post(
        "/problems/200/submissions",
        base_url=SITE,
        data={},
        headers={**HERE, "Referer": referer, "Accept": "application/json"},
    )
    assert told.json["link"] == {"href": "/login", "text": "Sign in"}


def test_a_script_gets_the_way_back_too(visitor):
    answer = visitor.client.post(
        "/problems/200/submissions",
        base_url=SITE,
        data={},
        headers={**HERE, "Referer": f"{SITE}/problems/200", "Accept": "application/json"},
    )
    assert answer.status_code == 401
    assert answer.json["link"] == {"href": "/login?next=/problems/200", "text": "Sign in"}


@pytest.mark.parametrize(
    "next_page",
    [
        *("//evil.example", "/\\evil.example", "https://evil.example", "javascript:1"),
        *("/\t/evil.example", "/\n/evil.example", "/\r\\evil.example", "/\x00/evil.example"),
    ],
)
def test_signing_in_leads_nowhere_else(visitor, person, next_page):
    person("ada")
    answer = visitor.post("/login", {"login": "ada", "password": PASSWORD, "next": next_page})
    assert answer.location == "/"


def test_wrong_name_and_wrong_password_get_the_same_answer(visitor, person):
    person("ada")
    one = visitor.sign_in("ada", "wrong password")
    two = visitor.sign_in("nobody", "wrong password")
    assert one.status_code == two.status_code == 401
    assert "Sign-in name or password is wrong." in one.text
    assert "Sign-in name or password is wrong." in two.text
    assert visitor.get("/").status_code == 303


def test_a_refusal_costs_one_slow_hash_at_least_whoever_it_is(monkeypatch):
    slow = passwords.hashed("a long enough one", login="x")
    checked = []
    monkeypatch.setattr(passwords, "_is", lambda kept, given: checked.append(kept))
    for kept in (None, slow, passwords.draw().hash):
        checked.clear()
        assert not passwords.matches(kept, "wrong")
        assert len([k for k in checked if not passwords.is_outdated(k)]) == 1


def test_guessing_is_slowed(app, visitor, person):
    person("ada")
    codes = [visitor.sign_in("ada", f"wrong {i}").status_code for i in range(11)]
    assert codes == [401] * 10 + [429]
    assert visitor.sign_in("ada").status_code == 429, "also with the right password"
    person("eve")
    assert visitor.sign_in("eve").status_code == 303, "others are not kept out"


def test_guessing_from_afar_does_not_lock_the_owner_out_at_once(app, visitor, person):
    person("ada")
    stranger = type(visitor)(app)
    token = stranger.csrf("/login")

    def guess(place: int) -> int:
        answer = stranger.client.post(
            "/login",
            base_url="http://course.example.edu:8000",
            data={"csrf_token": token, "login": "ada", "password": "wrong"},
            headers={"Origin": "http://course.example.edu:8000"},
            environ_base={"REMOTE_ADDR": f"10.0.0.{place}"},
        )
        return answer.status_code

    assert [guess(1) for _ in range(11)] == [401] * 10 + [429]
    assert visitor.sign_in("ada").status_code == 303
    codes = [guess(2 + n // 9) for n in range(99)]
    assert codes.count(429) == 99 - 90, "from everywhere together a hundred"


def test_what_is_left_is_told(visitor, person):
    person("ada")
    for i in range(6):
        answer = visitor.sign_in("ada", f"wrong {i}")
    assert "4 more tries" in answer.text


def test_a_session_of_before_is_not_carried_over(visitor, person):
    person("ada")
    with visitor.client.session_transaction(base_url="http://course.example.edu:8000") as session:
        session["planted"] = True
    visitor.sign_in("ada")
    with visitor.client.session_transaction(base_url="http://course.example.edu:8000") as session:
        assert "planted" not in session


def test_signing_out_ends_the_session(signed_in):
    ada = signed_in("ada")
    assert ada.post("/logout", {}, page="/account").location == "/login"
    assert ada.get("/").status_code == 303


def test_a_cookie_names_a_session_that_has_ended(signed_in, store):
    ada = signed_in("ada")
    with store.write() as session:
        session.get_one(User, 1).session_version += 1
    assert ada.get("/").status_code == 303


def test_a_closed_account_is_out_at_once(app, signed_in, store):
    from web.accounts import people

    signed_in("root", Role.ADMIN)
    ada = signed_in("ada")
    with app.test_request_context(), store.write() as session:
        people.disable(session, session.get_one(User, 2), "u1")
    assert ada.get("/").status_code == 303
    assert ada.sign_in("ada").status_code == 403


def test_a_site_name_that_is_not_ours_is_refused(visitor):
    answer = visitor.client.get("/login", base_url="http://evil.example")
    assert answer.status_code == 403


def test_a_form_from_elsewhere_is_refused(visitor, person):
    person("ada")
    answer = visitor.post(
        "/login", {"login": "ada", "password": PASSWORD}, headers={"Origin": "http://evil.example"}
    )
    assert answer.status_code == 403
    token = visitor.csrf("/login")
    answer = visitor.client.post(
        "/login", base_url="http://course.example.edu:8000", data={"csrf_token": token, "login": "ada"}
    )
    assert answer.status_code == 403, "no Origin at all"


def test_fields_that_are_missing_or_absurd(visitor):
    for data in (
        {},
        {"login": "x"},
        {"login": "x" * 5000, "password": "y"},
        {"login": "\0", "password": "\0" * 10},
    ):
        assert visitor.post("/login", data).status_code in (401, 422)


def test_only_a_password_given_by_someone_else_has_to_be_changed(app, person, store, visitor):
    from web.accounts import people

    person("ada")
    with app.test_request_context(), store.write() as session:
        drawn = people.reset_password(session, session.get_one(User, 1), "u9")
    assert visitor.sign_in("ada").status_code == 401
    assert visitor.sign_in("ada", drawn).status_code == 303
    assert visitor.get("/").location == "/account/password"
    assert visitor.get("/problems/200").location == "/account/password"
    answer = visitor.post(
        "/account/password", {"new": "a new password", "again": "a new password"}, page="/account/password"
    )
    assert answer.status_code == 303
    assert visitor.get("/").status_code == 200


def test_two_users_do_not_see_each_others_submissions(signed_in):
    ada, eve = signed_in("ada"), signed_in("eve")
    answer = ada.post("/problems/200/submissions", {"source": "secret_of_ada = 1"}, page="/problems/200")
    number = answer.location.rpartition("/")[2]
    assert "secret_of_ada" in ada.get(f"/submissions/{number}").text
    for path in ("", "/fragment", "/state", "/events"):
        assert eve.get(f"/submissions/{number}{path}").status_code == 404
    assert eve.get(f"/problems/200?from={number}").status_code == 404
    assert "secret_of_ada" not in eve.get("/problems/200").text
