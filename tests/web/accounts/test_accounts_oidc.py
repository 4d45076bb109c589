"""Signing in elsewhere, against a provider that runs: discovery, redirect, code with PKCE, signed token."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from flask import Flask, jsonify, redirect, request
from joserfc import jwt
from joserfc.jwk import RSAKey
from sqlalchemy import select, update
from werkzeug.serving import make_server

from judge.store import Store
from tests.web.accounts.conftest import SITE, TOKEN, Visitor
from web.accounts import people
from web.accounts.tables import Role, User
from web.app import create_app
from web.settings import Settings

CLIENT, SECRET = "the-course", "shared-secret"


@dataclass
class Provider:
    """An OpenID Connect provider that signs everybody in as `claims`. `twist` changes what a token says."""

    issuer: str = ""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    claims: dict[str, Any] = field(
        default_factory=lambda: {"sub": "s-17", "preferred_username": "s001", "name": "Ada L."}
    )
    twist: dict[str, Any] = field(default_factory=dict)
    forged: RSAKey | None = None  # signs instead of the key that is published
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def app(self) -> Flask:
        app = Flask("provider")

        @app.get("/.well-known/openid-configuration")
        def discovery() -> Any:
            return jsonify(
                issuer=self.issuer,
                authorization_endpoint=f"{self.issuer}/authorize",
                token_endpoint=f"{self.issuer}/token",
                jwks_uri=f"{self.issuer}/jwks",
                id_token_signing_alg_values_supported=["RS256"],
            )

        @app.get("/jwks")
        def jwks() -> Any:
            return jsonify(keys=[self.key.as_dict(private=False)])

        @app.get("/authorize")
        def authorize() -> Any:
            code = f"code{len(self.codes)}"
            self.codes[code] = dict(request.args)
            return redirect(f"{request.args['redirect_uri']}?code={code}&state={request.args['state']}")

        @app.post("/token")
        def token() -> Any:
            asked = self.codes.pop(request.form["code"])
            verifier = hashlib.sha256(request.form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(verifier).rstrip(b"=").decode() == asked["code_challenge"]
            assert request.authorization.username == CLIENT
            assert request.authorization.password == SECRET
            now = int(time.time())
            claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
            signed = jwt.encode(
                {"alg": "RS256", "kid": "one"}, claims | self.claims | self.twist, self.forged or self.key
            )
            return jsonify(access_token="x", token_type="Bearer", id_token=signed)

        return app


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    server = make_server("127.0.0.1", 0, made.app(), threaded=True)
    made.issuer = f"http://127.0.0.1:{server.server_port}"
    # It looks all the time whether it is to end: half a second apart, where nobody says.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    server.shutdown()
    thread.join(10)


@pytest.fixture
def settings(tmp_path, provider: Provider) -> Settings:
    return Settings(
        data_dir=tmp_path,
        token=TOKEN,
        accounts="password",
        site_url=SITE,
        oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
        oidc_name="Example University",
    )


def go(visitor: Visitor, back: str = "") -> Any:
    """The whole way: to the provider, and back with what it gives."""
    there = visitor.get("/login/oidc" + (f"?next={back}" if back else ""))
    assert there.status_code == 302, there.text
    answer = requests.get(there.location, allow_redirects=False, timeout=10)
    here = urlsplit(answer.headers["Location"])
    assert f"{here.scheme}://{here.netloc}" == SITE
    return visitor.get(f"{here.path}?{here.query}")


def entered(app, store, login="s001", **more) -> int:
    with app.test_request_context(), store.write() as session:
        return people.create(session, login=login, name="王小明", must_change=True, **more).id


def test_the_account_of_a_roster_is_theirs_and_stays_so(app, store, provider, visitor):
    number = entered(app, store)
    assert "Sign in with Example University" in visitor.get("/login").text
    assert go(visitor, "/problems/200").location == "/problems/200"
    page = visitor.get("/account").text
    assert "王小明" in page
    assert "Change the password" not in page
    provider.claims["preferred_username"] = "renamed"
    again = Visitor(app)
    assert go(again).location == "/"
    with store.read() as session:
        assert session.scalars(select(User.id)).all() == [number]


def test_nobody_gets_an_account_that_is_in_use(app, store, provider, visitor, person):
    person("s001")
    assert visitor.sign_in("s001").status_code == 303
    other = Visitor(app)
    assert go(other).location == "/login"
    assert "belongs to another account" in other.get("/login").text
    assert other.get("/").status_code == 303


def test_nor_one_that_somebody_has_made_for_themselves(app, settings, store, provider, visitor):
    owner = Visitor(create_app(settings.model_copy(update={"registration": "open"})))
    chosen = {"new": "correct horse battery", "again": "correct horse battery"}
    made = owner.post("/register", {"login": "s001", "name": "Ada", **chosen}, page="/register")
    assert made.status_code == 303, made.text
    assert go(visitor).location == "/login"
    with store.write() as session:
        session.execute(update(User).values(last_seen_at=None))
    assert go(Visitor(app)).location == "/login", "its password was chosen, not drawn"
    assert owner.get("/account").status_code == 200


@pytest.mark.parametrize("role", [Role.TEACHER, Role.ADMIN])
def test_nor_one_with_rights(app, store, provider, visitor, role):
    entered(app, store, role=role)
    assert go(visitor).location == "/login"


def test_a_stranger_is_told_whom_to_ask(app, store, provider, visitor):
    assert go(visitor).location == "/login"
    assert "Ask your teacher to add you as “s001”" in visitor.get("/login").text
    with store.read() as session:
        assert session.scalars(select(User)).all() == []


def test_an_open_site_makes_an_account(app, settings, store, provider):
    visitor = Visitor(create_app(settings.model_copy(update={"registration": "open"})))
    assert go(visitor).location == "/"
    assert "Ada L." in visitor.get("/").text
    with store.read() as session:
        assert session.scalars(select(User.role)).all() == [Role.LEARNER]


@pytest.mark.parametrize(
    "name", ["\u202eevil", "x" * 81, "...", "", None, 7.5e300, "a" + "\u0301" * 5, ["a"] * 99]
)
def test_a_name_that_is_none_of_ours_gives_way_to_the_sign_in_name(app, settings, store, provider, name):
    provider.claims["name"] = name
    visitor = Visitor(create_app(settings.model_copy(update={"registration": "open"})))
    assert go(visitor).location == "/"
    with store.read() as session:
        assert session.scalars(select(User.name)).all() == ["7.5e+300" if name == 7.5e300 else "s001"]


@pytest.mark.parametrize(
    ("login", "told"),
    [
        (
            "王小明",
            "Your school calls you “王小明”, which cannot be a sign-in name here. A sign-in name has 1 to 64",
        ),
        ("x" * 65, f"“{'x' * 64}…”, which cannot be"),
        ("a\u202eb", "“a\ufffdb”, which cannot be"),
        ("", "does not say by which name you sign in (preferred_username)"),
        (None, "does not say by which name you sign in"),
    ],
)
@pytest.mark.parametrize("registration", ["open", "roster"])
def test_a_sign_in_name_that_cannot_be_one_is_told(app, settings, store, provider, login, told, registration):
    provider.claims["preferred_username"] = login
    visitor = Visitor(create_app(settings.model_copy(update={"registration": registration})))
    assert go(visitor).location == "/login"
    page = visitor.get("/login").text
    assert told in page
    assert "Ask the administrator." in page
    with store.read() as session:
        assert session.scalars(select(User)).all() == []


@pytest.mark.parametrize(
    "twist",
    [
        {"nonce": "another"},
        {"aud": "another-client"},
        {"iss": "http://evil.example"},
        {"exp": 1},
        {"sub": ""},
        {"sub": "x" * 300},
        {"sub": "x" * 240},
        {},
    ],
)
def test_a_token_that_is_not_for_us_opens_nothing(app, store, provider, visitor, twist):
    entered(app, store)
    provider.twist = twist
    if not twist:
        provider.forged = RSAKey.generate_key(2048, {"kid": "one"})
    answer = go(visitor)
    assert answer.location == "/login"
    assert "did not work" in visitor.get("/login").text
    assert visitor.get("/").status_code == 303


def test_an_answer_that_nobody_asked_for_opens_nothing(app, store, provider, visitor):
    entered(app, store)
    there = visitor.get("/login/oidc")
    state = parse_qs(urlsplit(there.location).query)["state"][0]
    for query in ("", "?code=x", "?code=x&state=guessed", f"?error=access_denied&state={state}"):
        assert Visitor(app).get(f"/login/oidc/back{query}").location == "/login"


def test_a_provider_that_does_not_answer_is_told(app, settings, provider):
    gone = settings.model_copy(update={"oidc_issuer": "http://127.0.0.1:9"})
    visitor = Visitor(create_app(gone))
    assert visitor.get("/login/oidc").location == "/login"
    assert "did not work" in visitor.get("/login").text


def test_a_closed_account_stays_closed(app, store, provider, visitor):
    number = entered(app, store)
    go(visitor)
    with app.test_request_context(), store.write() as session:
        people.disable(session, session.get_one(User, number), "u9")
    other = Visitor(app)
    assert go(other).location == "/login"


def test_who_has_no_password_deletes_the_account_by_its_name(app, store, provider, visitor):
    entered(app, store)
    go(visitor)
    assert visitor.post("/account/delete", {"password": "guess"}, page="/account").status_code == 401
    assert visitor.get("/account/password").status_code == 404
    assert visitor.post("/account/delete", {"password": "s001"}, page="/account").status_code == 200
    with store.read() as session:
        assert session.scalars(select(User)).all() == []


def test_an_account_without_a_password_cannot_be_entered_with_one(app, store, provider, visitor):
    entered(app, store)
    go(visitor)
    for password in ("", "None", "s001"):
        assert Visitor(app).sign_in("s001", password).status_code in (401, 422)


def test_a_site_without_a_provider_has_no_such_page(tmp_path):
    made = Settings(data_dir=tmp_path, token=TOKEN, accounts="password", site_url=SITE)
    Store(made.url).migrate()
    assert Visitor(create_app(made)).get("/login/oidc").status_code == 404
