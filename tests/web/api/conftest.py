"""Programs that hold a token, on a site with accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from tests.web.accounts.conftest import (  # noqa: F401
    SITE,
    Visitor,
    app,
    person,
    settings,
    signed_in,
    store,
    visitor,
)
from tests.web.conftest import judge_all  # noqa: F401
from web.accounts.tables import User
from web.api import tokens


class Program:
    """A client without cookies that sends its token."""

    def __init__(self, app: Flask, token: str, user: User | None = None) -> None:  # noqa: F811
        self.client, self.token, self.user = app.test_client(use_cookies=False), token, user

    def ask(self, method: str, path: str, lang: str = "en", **more: Any) -> Any:
        headers = {
            "Accept-Language": lang,
            "Authorization": f"Bearer {self.token}",
            **more.pop("headers", {}),
        }
        return self.client.open(f"/api/v1{path}", method=method, base_url=SITE, headers=headers, **more)

    def get(self, path: str, **more: Any) -> Any:
        return self.ask("GET", path, **more)

    def post(self, path: str, **more: Any) -> Any:
        return self.ask("POST", path, **more)

    def submit(self, source: str, problem: int = 200, **more: Any) -> int:
        answer = self.post("/submissions", json={"problem": problem, "source": source, **more})
        assert answer.status_code == 201, answer.text
        return int(answer.json["id"])


@pytest.fixture
def program(app: Flask, store: Any, person: Callable[..., User]) -> Callable[..., Program]:  # noqa: F811
    """Makes an account, a token of it, and a program that holds the token."""

    def make(login: str, **more: Any) -> Program:
        user = person(login, **more)
        with app.test_request_context(), store.write() as session:
            _, text = tokens.make(session, session.get_one(User, user.id), name="a laptop", days=30)
        return Program(app, text, user)

    return make
