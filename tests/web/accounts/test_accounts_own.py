"""The first administrator, registering, and one's own account."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from judge.store import Submission
from tests.web.accounts.conftest import SITE, TOKEN
from web.accounts import passwords, people
from web.accounts.names import NameRefused, clean_login, clean_name
from web.accounts.tables import AuditEntry, Role, User
from web.app import create_app

NEW = {"login": "root", "name": "The Root", "new": "a fine password", "again": "a fine password"}


def test_the_first_administrator_is_made_once(app, store, visitor):
    assert visitor.get("/setup").status_code == 403
    assert visitor.get("/enter?token=wrong").status_code == 403
    assert visitor.get("/enter?token=a-token-for-tests").location == "/setup"
    assert visitor.post("/setup", {**NEW, "again": "another one"}, page="/setup").status_code == 422
    assert visitor.post("/setup", NEW, page="/setup").location == "/admin/accounts"
    with store.read() as session:
        assert session.scalars(select(User.role)).all() == [Role.ADMIN]
    other = type(visitor)(app)
    assert other.get("/enter?token=a-token-for-tests").location == "/setup"
    assert other.get("/setup").location == "/login"
    assert other.post("/setup", {**NEW, "login": "second"}).status_code == 403


def test_of_two_browsers_at_the_start_address_one_makes_the_administrator(
    app, store, visitor, person, monkeypatch
):
    visitor.get(f"/enter?token={TOKEN}")
    hashed = passwords.hashed

    def while_hashing(password, *, login):
        person("quicker", Role.ADMIN)
        return hashed(password, login=login)

    monkeypatch.setattr(passwords, "hashed", while_hashing)
    assert visitor.post("/setup", NEW, page="/setup").status_code == 409
    with store.read() as session:
        assert session.scalars(select(User.login)).all() == ["quicker"]


def test_a_password_given_by_someone_else_is_not_chosen_again(app, person, visitor):
    person("ada", must_change=True)
    visitor.sign_in("ada")
    same = {"new": "correct horse battery", "again": "correct horse battery"}
    answer = visitor.post("/account/password", same, page="/account/password")
    assert answer.status_code == 422
    assert "choose another one" in answer.text
    assert visitor.get("/").location == "/account/password"


def test_registering_is_only_there_where_it_is_open(visitor):
    assert visitor.get("/register").status_code == 404
    assert visitor.post("/register", NEW).status_code == 404


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"login": "with space"}, "A sign-in name has 1 to 64 characters"),
        ({"login": "ADA"}, "is taken"),
        ({"name": "\u202eevil"}, "U+202E"),
        ({"name": " ... "}, "at least one letter or digit"),
        ({"new": "short", "again": "short"}, "too short"),
        ({"new": "xroot-and-more", "again": "xroot-and-more"}, "easily guessed"),
        ({"new": "", "again": ""}, "This field is empty"),
    ],
)
def test_an_open_site_says_what_is_wrong_with_a_new_account(app, settings, person, change, told):
    from tests.web.accounts.conftest import Visitor

    person("ada")
    visitor = Visitor(create_app(settings.model_copy(update={"registration": "open"})))
    answer = visitor.post("/register", {**NEW, **change}, page="/register")
    assert answer.status_code == 422
    assert told in answer.text
    assert visitor.get("/").status_code == 303


def test_a_new_account_is_a_learner_whatever_was_sent(app, settings, store):
    from tests.web.accounts.conftest import Visitor

    visitor = Visitor(create_app(settings.model_copy(update={"registration": "open"})))
    assert visitor.post("/register", {**NEW, "role": "admin"}, page="/register").status_code == 303
    with store.read() as session:
        assert session.scalars(select(User.role)).all() == [Role.LEARNER]


def test_name_and_time_zone(signed_in, store):
    ada = signed_in("ada")
    assert (
        ada.post(
            "/account", {"name": " 阿达  L. ", "time_zone": "Asia/Shanghai"}, page="/account"
        ).status_code
        == 303
    )
    page = ada.get("/account")
    assert "阿达 L." in page.text
    assert "Saved." in page.text
    answer = ada.post("/account", {"name": "A", "time_zone": "Mars/Base"}, page="/account")
    assert answer.status_code == 422
    assert "no such time zone" in answer.text
    answer = ada.post(
        "/account", {"name": "a\u0301\u0301\u0301\u0301\u0301", "time_zone": ""}, page="/account"
    )
    assert answer.status_code == 422


def test_a_new_password_ends_other_sessions(app, signed_in):
    ada = signed_in("ada")
    elsewhere = type(ada)(app)
    elsewhere.sign_in("ada")
    data = {"current": "wrong", "new": "an even better one", "again": "an even better one"}
    assert ada.post("/account/password", data, page="/account/password").status_code == 401
    assert elsewhere.get("/").status_code == 200
    data["current"] = "correct horse battery"
    assert ada.post("/account/password", data, page="/account/password").status_code == 303
    assert ada.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 303


def test_guessing_the_password_of_an_open_session_is_slowed_for_that_account_alone(signed_in):
    ada, ben = signed_in("ada"), signed_in("ben")

    def guess(visitor, i):
        data = {"password": f"wrong {i}", "login": f"made up {i}"}
        return visitor.post("/account/delete", data, page="/account").status_code

    assert [guess(ada, i) for i in range(11)] == [401] * 10 + [429]
    assert guess(ben, 0) == 401
    change = {"current": "wrong", "new": "an even better one", "again": "an even better one"}
    token = {"csrf_token": ada.csrf("/account")}
    answer = ada.client.post(
        "/account/password", base_url=SITE, data=change | token, headers={"Origin": SITE}
    )
    assert answer.status_code == 429, "wherever it is guessed"


def test_deleting_the_account_takes_all_of_it(signed_in, store):
    signed_in("root", Role.ADMIN)
    ada = signed_in("ada")
    ada.post("/problems/200/submissions", {"source": "x = 1"}, page="/problems/200")
    assert ada.post("/account/delete", {"password": "wrong"}, page="/account").status_code == 401
    assert (
        "are gone" in ada.post("/account/delete", {"password": "correct horse battery"}, page="/account").text
    )
    assert ada.get("/").status_code == 303
    with store.read() as session:
        assert session.scalars(select(Submission)).all() == []
        assert session.scalars(select(User.login)).all() == ["root"]
        assert "deleted" in session.scalars(select(AuditEntry.action)).all()


def test_an_account_number_is_never_given_again(app, signed_in, person, store):
    signed_in("root", Role.ADMIN)
    number = person("ada").id
    with app.test_request_context(), store.write() as session:
        people.remove(session, session.get_one(User, number), "u1")
    assert person("eve").id > number


def test_the_last_administrator_stays(signed_in):
    root = signed_in("root", Role.ADMIN)
    answer = root.post("/account/delete", {"password": "correct horse battery"}, page="/account")
    assert answer.status_code == 409
    assert "only administrator" in answer.text


def test_a_closed_administrator_is_not_the_last_one(app, person, store):
    person("root", Role.ADMIN)
    closed = person("former", Role.ADMIN)
    with app.test_request_context(), store.write() as session:
        people.disable(session, session.get_one(User, closed.id), "u1")
    with app.test_request_context(), store.write() as session:
        people.set_role(session, session.get_one(User, closed.id), Role.LEARNER, "u1")
        with pytest.raises(people.AccountRefused):
            people.set_role(session, session.get_one(User, 1), Role.LEARNER, "u1")


def test_accounts_are_not_there_in_local_mode(tmp_path):
    from judge.store import Store
    from web.settings import Settings

    settings = Settings(data_dir=tmp_path, token="t")
    Store(settings.url).migrate()
    client = create_app(settings).test_client()
    client.get("/enter?token=t", base_url="http://127.0.0.1:8000")
    for path in ("/login", "/account", "/register", "/setup"):
        assert client.get(path, base_url="http://127.0.0.1:8000").status_code == 404


@pytest.mark.parametrize("name", ["山田 太郎", "Nguyễn Thị", "O'Neill", "علی‌رضا", "1-23-A"])
def test_names_as_people_write_them(app, name):
    with app.test_request_context():
        assert clean_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "\u200b", "a\x00b", "a\u2066b", "a\ufffdb", "a" * 81, "\U000e0041bc", "x\ud800"]
)
def test_names_that_hide_something(app, name):
    with app.test_request_context(), pytest.raises(NameRefused):
        clean_name(name)


def test_sign_in_names_have_one_spelling(app):
    with app.test_request_context():
        assert clean_login(" ＡＤＡ_1 ") == "ada_1"
        for wrong in ("", "-x", "аda", "a b", "x" * 65, "a\n"):
            if wrong == "a\n":
                assert clean_login(wrong) == "a"
                continue
            with pytest.raises(NameRefused):
                clean_login(wrong)
