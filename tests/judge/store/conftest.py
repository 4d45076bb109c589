"""A store of its own for each test, on a real SQLite file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.store import Queue, Store

PROBLEM, VERSION = 200, "0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path, migrated: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{shutil.copy(migrated, tmp_path / 'course.db')}")
    yield made
    made.close()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store)


@pytest.fixture
def submit(queue: Queue) -> Any:
    def put(user: str = "local", source: bytes = b"x = 1\n", **more: Any) -> int:
        return queue.submit(user=user, problem=PROBLEM, version=VERSION, source=source, **more)

    return put


@pytest.fixture
def verdict() -> dict[str, Any]:
    """A verdict as the judge writes one."""
    return {
        "problem": PROBLEM,
        "version": VERSION,
        "status": "accepted",
        "passed": 1,
        "total": 1,
        "time_ms": 3,
        "tier": "strong",
        "kernels": "fake-strict",
        "versions": {},
        "cases": [{"name": "hidden", "group": "hidden", "status": "accepted", "time_ms": 0, "message": None}],
        "message": None,
        "diagnosis": [],
        "counterexample": None,
    }
