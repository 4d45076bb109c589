"""A site with accounts over a database of its own, and browsers that open it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from judge.store import Store
from tests.web.conftest import QUICK_HASHER
from web.accounts import people
from web.accounts.tables import Role, User
from web.app import create_app
from web.settings import Settings

SITE = "http://course.example.edu:8000"
TOKEN = "a-token-for-tests"
SESSION_KEY = bytes(
    32
)  # the same for all: a session of one test's app is one of another's, if that has the same people
PASSWORD = "correct horse battery"
HASH = QUICK_HASHER.hash(PASSWORD)


class Visitor:
    """A browser of its own: cookies, Origin, CSRF token."""

    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()

    def get(self, path: str, lang: str = "en", **more: Any) -> Any:
        headers = {"Accept-Language": lang, **more.pop("headers", {})}
        return self.client.get(path, base_url=SITE, headers=headers, **more)

    def csrf(self, path: str) -> str:
        return re.search(r'name="csrf_token" value="([^"]+)"', self.get(path, follow_redirects=True).text)[1]

    def post(self, path: str, data: dict[str, Any], page: str = "/login", **more: Any) -> Any:
        headers = {"Origin": SITE, "Accept-Language": "en", **more.pop("headers", {})}
        data = {"csrf_token": self.csrf(page), **data}
        return self.client.post(path, base_url=SITE, data=data, headers=headers, **more)

    def sign_in(self, login: str, password: str = PASSWORD, **more: Any) -> Any:
        return self.post("/login", {"login": login, "password": password, **more})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, token=TOKEN, accounts="password", site_url=SITE)


@pytest.fixture
def app(settings: Settings, migrated: Path) -> Iterator[Flask]:
    shutil.copy(migrated, settings.data_dir / "course.db")
    (settings.data_dir / "session.key").write_bytes(SESSION_KEY)
    made = create_app(settings)
    yield made
    made.extensions["course"].store.close()


@pytest.fixture
def store(app: Flask) -> Store:
    return app.extensions["course"].store


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    return Visitor(app)


@pytest.fixture
def person(app: Flask, store: Store) -> Callable[..., User]:
    """Makes an account; its password is PASSWORD."""

    def make(login: str, role: Role = Role.LEARNER, **more: Any) -> User:
        with app.test_request_context(), store.write() as session:
            return people.create(
                session, login=login, name=login.title(), role=role, password_hash=HASH, **more
            )

    return make


@pytest.fixture
def signed_in(app: Flask, person: Callable[..., User]) -> Callable[..., Visitor]:
    """Makes an account and gives a browser in which it has signed in."""

    def make(login: str, role: Role = Role.LEARNER) -> Visitor:
        person(login, role)
        visitor = Visitor(app)
        assert visitor.sign_in(login).status_code == 303
        return visitor

    return make
