"""A fault of the judge ends in a verdict and a log line, and the log has neither the seed nor the program."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest
import structlog
from sqlalchemy import select

from judge import logs
from judge.judge import JudgeError
from judge.packages import survey
from judge.store import Submission, reading
from judge.worker import Worker

PACKAGES = survey().packages


class BrokenJudge:
    """Stands where the judge stands when its processes cannot be started."""

    tier = "strong"

    def judge(self, package, source, seed, *, which, on_event):
        on_event({"type": "start", "total": 20, "tier": self.tier})
        held = (source, seed.hex(), seed)
        raise JudgeError(f"cannot fork, {len(held)} things held")


@pytest.fixture(autouse=True)
def restore_structlog():
    yield
    structlog.reset_defaults()


def test_a_fault_of_ours_is_told_without_secrets(store, queue, submit, capfd):
    logs.configure()
    number = submit(source=b"learners_own = 12345\n")
    worker = Worker(store, BrokenJudge(), PACKAGES, slots=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    ends = time.monotonic() + 20
    found = None
    while time.monotonic() < ends and not (found and found.status.is_final):
        time.sleep(0.02)
        with store.read() as session:
            found = reading.find(session, "local", number)
    worker.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert found.verdict["message"]["code"] == "system_error"
    with store.read() as session:
        seed = session.scalars(select(Submission.seed)).one()
    written = "".join(capfd.readouterr())
    assert "judge_failed" in written
    assert "cannot fork" in written
    assert seed.hex() not in written
    assert repr(seed)[2:10] not in written
    assert "learners_own" not in written


def test_a_line_goes_to_the_stderr_of_its_time(monkeypatch):
    first, second = io.StringIO(), io.StringIO()
    log = structlog.get_logger("of a module")
    monkeypatch.setattr(sys, "stderr", first)
    logs.configure()
    log.info("one")
    first.close()
    monkeypatch.setattr(sys, "stderr", second)
    log.info("two")
    assert "two" in second.getvalue()
