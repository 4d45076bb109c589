"""The app over a database of its own, and a browser-like client that has opened the start address."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import FileSystemBytecodeCache

from judge.judge import Judge
from judge.packages import Collection, survey
from web.accounts import passwords
from web.app import create_app
from web.settings import Settings

BASE = "http://127.0.0.1:8000"
TOKEN = "a-token-for-tests"
# Not the settings of drawn passwords either: those must go on being told from the others.
QUICK_HASHER = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1)
NOBODY = QUICK_HASHER.hash("nobody's password")


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


@pytest.fixture(scope="session")
def surveyed() -> Collection:
    return survey()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> FileSystemBytecodeCache:
    return FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))


@pytest.fixture(autouse=True)
def _an_app_is_made_quickly(
    monkeypatch: pytest.MonkeyPatch, surveyed: Collection, compiled: FileSystemBytecodeCache
) -> None:
    """Each test has an app of its own, and nearly all of its time went into what is the same for all: reading the problem
    packages (nobody here changes their files, and they are frozen), compiling the templates, and hashing the passwords
    of those who sign in. The hash is the same kind, with less work; what it is for people, test_passwords.py holds."""
    monkeypatch.setattr("web.app.survey", lambda: replace(surveyed, packages=dict(surveyed.packages)))
    monkeypatch.setattr(Flask, "jinja_options", {**Flask.jinja_options, "bytecode_cache": compiled})
    monkeypatch.setattr(passwords, "_hasher", QUICK_HASHER)
    monkeypatch.setattr(passwords, "_NOBODY", NOBODY)


@pytest.fixture
def app(tmp_path: Path, migrated: Path) -> Iterator[Flask]:
    shutil.copy(migrated, tmp_path / "course.db")
    made = create_app(Settings(data_dir=tmp_path, token=TOKEN))
    yield made
    made.extensions["course"].store.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client that has not opened the start address."""
    return app.test_client()


@pytest.fixture
def browser(client: FlaskClient) -> Browser:
    """A client that has."""
    assert client.get(f"/enter?token={TOKEN}", base_url=BASE).status_code == 303
    return Browser(client)


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
