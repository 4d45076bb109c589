"""The app over a database of its own, and a browser-like client that has opened the start address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from judge.judge import Judge
from judge.store import Store
from web.app import create_app
from web.settings import Settings

BASE = "http://127.0.0.1:8000"
TOKEN = "a-token-for-tests"


class Browser:
    """A client that behaves as a browser on our own pages: right Host, Origin, session and CSRF token."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client

    def get(self, path: str, lang: str = "en", **more: Any) -> Any:
        headers = {"Accept-Language": lang, **more.pop("headers", {})}
        return self.client.get(path, base_url=BASE, headers=headers, **more)

    def csrf(self) -> str:
        return re.search(r'name="csrf_token" value="([^"]+)"', self.get("/").text)[1]

    def post(self, path: str, data: Any = None, lang: str = "en", **more: Any) -> Any:
        headers = {"Origin": BASE, "Accept-Language": lang, **more.pop("headers", {})}
        if isinstance(data, dict):
            data = {"csrf_token": self.csrf(), **data}
        return self.client.post(path, base_url=BASE, data=data, headers=headers, **more)

    def submit(self, source: str | bytes, problem: int = 200, **more: Any) -> int:
        """Send a program by the form; the number of the submission."""
        answer = self.post(f"/problems/{problem}/submissions", {"source": source, **more})
        assert answer.status_code == 303, answer.text
        return int(answer.location.rpartition("/")[2])


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    settings = Settings(data_dir=tmp_path, token=TOKEN)
    store = Store(settings.url)
    store.migrate()
    made = create_app(settings)
    yield made
    made.extensions["course"].store.close()
    store.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client that has not opened the start address."""
    return app.test_client()


@pytest.fixture
def browser(client: FlaskClient) -> Browser:
    """A client that has."""
    assert client.get(f"/enter?token={TOKEN}", base_url=BASE).status_code == 303
    return Browser(client)


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge(children=1) as made:
        yield made


@pytest.fixture
def judge_all(app: Flask, judge: Judge) -> Any:
    """Judges what is queued, as a worker does, and returns the verdicts."""

    def work() -> list[dict[str, Any]]:
        services, verdicts = app.extensions["course"], []
        while claim := services.queue.claim("test"):
            package = services.packages[claim.problem]
            which = "public" if claim.public_only else "all"
            verdict = judge.judge(package, claim.source, claim.seed, which=which).to_json()
            assert services.queue.finish(claim, verdict)
            verdicts.append(verdict)
        return verdicts

    return work
