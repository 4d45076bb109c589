"""What the database tells about a problem."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from judge.store import Queue, Store, reading
from judge.store.statistics import problem_stats
from judge.store.tables import Submission

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def judged(store: Store, queue: Queue, submit: Any, verdict: dict[str, Any]) -> Any:
    """Submit and judge: `judged(user, status, at, names=...)`, `at` in seconds after the first."""

    def put(user: str, status: str, at: float, names: tuple[str, ...] = (), **more: Any) -> None:
        number = submit(user, **more)
        claim = queue.claim("w")
        assert claim is not None
        diagnosis = [{"kind": "mistake", "names": list(names)}] if names else []
        assert queue.finish(claim, {**verdict, "status": status, "diagnosis": diagnosis})
        with store.write() as session:
            session.execute(update(Submission).where(Submission.id == number).values(created_at=1000.0 + at))

    return put


def test_solvers_times_and_mistakes_are_counted(store: Store, judged: Any) -> None:
    judged("ada", "wrong_answer", 0, ("int64",))
    judged("ada", "wrong_answer", 10, ("int64", "floor_pages"))
    judged("ada", "accepted", 60)
    judged("ada", "accepted", 90)
    judged("bob", "wrong_answer", 5)
    judged("cyd", "accepted", 7)
    judged("dan", "accepted", 8, public_only=True)
    with store.read() as session:
        (stats,) = problem_stats(session)
    assert (stats.submissions, stats.users, stats.solvers) == (6, 3, 2)
    assert stats.solve_rate == 2 / 3
    assert stats.seconds == 30.0  # ada took 60, cyd none
    assert stats.mistakes == {"int64": 2, "floor_pages": 1}
    assert stats.unnamed == 1
    assert stats.statuses == {"wrong_answer": 3, "accepted": 3}


def test_an_empty_database_has_no_statistics(store: Store) -> None:
    with store.read() as session:
        assert problem_stats(session) == []


def test_the_command_prints_them(store: Store, judged: Any) -> None:
    judged("ada", "wrong_answer", 0, ("int64",))
    env = {"COURSE_DATABASE_URL": store.url, "PATH": "/usr/bin:/bin"}
    command = [sys.executable, str(ROOT / "tools" / "problems.py"), "stats"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "1 submissions of 1 users, 0 solved it (0%), median -" in told
    assert "1 int64" in told
    told = subprocess.run(
        [*command, "--json"], env=env, capture_output=True, text=True, timeout=120, check=True
    ).stdout
    assert json.loads(told)[0]["mistakes"] == {"int64": 1}


def test_a_database_that_is_not_there_is_said(tmp_path: Path) -> None:
    env = {"COURSE_DATABASE_URL": f"sqlite:///{tmp_path / 'none.db'}", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, str(ROOT / "tools" / "problems.py"), "stats"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "has no submissions to count" in ended.stderr


def test_recent_problems_come_first(store: Store, queue: Queue) -> None:
    for problem in (200, 40, 200, 71):
        queue.submit(user="ada", problem=problem, version="0" * 16, source=b"x")
    with store.read() as session:
        assert reading.recent_problems(session) == [71, 200, 40]
        assert reading.recent_problems(session, 1) == [71]
