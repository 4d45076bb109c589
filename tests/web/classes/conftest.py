"""A class with a teacher and learners; the site and its visitors are those of the account tests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask import Flask
from sqlalchemy import select, update

from judge.core.status import Status
from judge.core.verdict import Verdict
from judge.store import Judgement, Store, Submission
from tests.web.accounts.conftest import SITE, Visitor, app, person, settings, signed_in, store, visitor  # noqa: F401
from web.accounts.tables import Role, User


@dataclass
class School:
    """A class `number`, its teacher's browser, those of two learners, and of another teacher who is not in it."""

    number: int
    teacher: Visitor
    ada: Visitor
    ben: Visitor
    outsider: Visitor

    @property
    def path(self) -> str:
        return f"/classes/{self.number}"


@dataclass
class Kept:
    """What a school is made from again: its database, and the cookie of each browser, in the order of School's fields."""

    database: Path
    number: int
    sessions: list[str]


@pytest.fixture(scope="session")
def kept() -> list[Kept]:
    """The one that all others are copied from, once it has been made."""
    return []


@pytest.fixture
def school(
    app: Flask,  # noqa: F811
    signed_in: Callable[..., Visitor],  # noqa: F811
    kept: list[Kept],
    tmp_path_factory: pytest.TempPathFactory,
) -> School:
    """Made through the site's forms by the first test that asks for one; the others get a copy. Nobody may be there yet."""
    path = app.extensions["course"].settings.data_dir / "course.db"
    cookie = {"key": app.config["SESSION_COOKIE_NAME"], "domain": urlsplit(SITE).hostname}
    if not kept:
        made = _make(signed_in)
        copy = tmp_path_factory.mktemp("school") / path.name
        _copy(path, copy)
        browsers = (made.teacher, made.ada, made.ben, made.outsider)
        kept.append(Kept(copy, made.number, [b.client.get_cookie(**cookie).value for b in browsers]))
        return made
    with app.extensions["course"].store.read() as session:
        assert session.scalars(select(User.id)).all() == [], (
            "the copy would replace them: ask for `school` first"
        )
    _copy(kept[0].database, path)
    browsers = [Visitor(app) for _ in kept[0].sessions]
    for browser, value in zip(browsers, kept[0].sessions, strict=True):
        browser.client.set_cookie(value=value, **cookie)
    return School(kept[0].number, *browsers)


def _make(signed_in: Callable[..., Visitor]) -> School:  # noqa: F811
    teacher = signed_in("tess", Role.TEACHER)
    ada, ben, outsider = signed_in("ada"), signed_in("ben"), signed_in("olaf", Role.TEACHER)
    made = teacher.post(
        "/classes/new", {"name": "推理 2026", "time_zone": "Asia/Shanghai"}, page="/classes/new"
    )
    assert made.status_code == 303, made.text
    found = School(int(made.location.rpartition("/")[2]), teacher, ada, ben, outsider)
    for login in ("ada", "ben"):
        added = teacher.post(
            f"{found.path}/people/add", {"login": login, "part": "learner"}, page=f"{found.path}/people"
        )
        assert added.status_code == 303, added.text
    return found


def _copy(database: Path, onto: Path) -> None:
    """All of a database, what its journal holds too; whoever has `onto` open sees it as one transaction."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(onto)) as target:
        source.backup(target)


@pytest.fixture
def assignment(school: School) -> str:
    """The path of an assignment of problems 40 (10 points) and 200 (20) that is open."""
    data = {
        "title": "Week 1",
        "opens": "2020-01-01T00:00",
        "deadline": "2099-01-01T23:59",
        "late_percent": "50",
        "problem": ["40", "200"],
        "points-40": "10",
        "points-200": "20",
    }
    made = school.teacher.post(f"{school.path}/assignments/new", data, page=f"{school.path}/assignments/new")
    assert made.status_code == 303, made.text
    return made.location


@pytest.fixture
def judged(store: Store) -> Callable[..., int]:  # noqa: F811
    """Puts a submission with its verdict into the store, as a worker would leave it."""

    def put(
        login_key: str, problem: int = 40, *, status: str = "accepted", passed: int = 19, **more: object
    ) -> int:
        with store.write() as session:
            row = Submission(
                user=login_key,
                problem=problem,
                version="0" * 16,
                source=b"x = 1\n",
                seed=b"0" * 16,
                status=status,
            )
            session.add(row)
            session.flush()
            verdict = Verdict(
                problem=problem,
                version="0" * 16,
                status=Status(status),
                passed=passed,
                total=19,
                time_ms=1,
                tier="strong",
                kernels="fake",
                versions={},
                cases=[],
                diagnosis=more.pop("diagnosis", []),
            ).to_json()
            judgement = Judgement(
                submission=row.id,
                attempt=1,
                status=status,
                passed=passed,
                total=19,
                tier="strong",
                verdict=verdict,
                waited_s=0.0,
                judged_s=0.0,
            )
            session.add(judgement)
            session.flush()
            values = {"current_judgement": judgement.id, "finished_at": 1.0, **more}
            session.execute(update(Submission).where(Submission.id == row.id).values(**values))
            return session.scalars(select(Submission.id).order_by(Submission.id.desc())).first()

    return put
