"""A real worker, judging a real submission, that ends in the middle: every submission still gets one verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import func, select

from judge.core.status import Status
from judge.packages import survey
from judge.store import Judgement, Queue, Submission, reading
from judge.store.bell import bell_folder, ring
from judge.store.queue import LEASE_S

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
PACKAGE = survey().packages[200]
SLOW = PACKAGE.solution.replace("import torch\n", "import time\n\nimport torch\n", 1).replace(
    "page_size):\n", "page_size):\n    time.sleep(0.25)\n", 1
)
TIMEOUT_S = 300.0  # a deadline, no expectation


@pytest.fixture
def start_worker(tmp_path):
    workers = []
    env = {k: v for k, v in os.environ.items() if not k.startswith("COURSE_")} | {
        "COURSE_DATA_DIR": str(tmp_path),
        "COURSE_PREPARE_PROBLEMS": "0",  # test_store_worker_warm.py is about that
    }

    def start():
        with (tmp_path / f"worker{len(workers)}.log").open("w") as log:
            workers.append(
                subprocess.Popen(
                    [sys.executable, "-m", "judge.worker"], cwd=ROOT, env=env, stdout=log, stderr=log
                )
            )
        return workers[-1]

    yield start
    for worker in workers:
        if worker.poll() is None:
            worker.terminate()
            worker.wait(30)


def submit(store, source):
    number = Queue(store).submit(
        user="local", problem=PACKAGE.id, version=PACKAGE.version, source=source.encode()
    )
    ring(bell_folder(store.url))
    return number


def find(store, number):
    with store.read() as session:
        return reading.find(session, "local", number)


def cases(store, number):
    with store.read() as session:
        found = reading.find(session, "local", number)
        return reading.progress(session, number, found.attempt, 0)


def wait_until(what, timeout=TIMEOUT_S):
    ends = time.monotonic() + timeout
    while time.monotonic() < ends:
        if what():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def judgements(store, number):
    with store.read() as session:
        return session.scalar(select(func.count()).where(Judgement.submission == number))


def test_the_slow_program_is_slow_and_right():
    assert SLOW.count("time.sleep") == 1


def test_kill_9_in_the_middle_ends_with_one_verdict(store, start_worker):
    first = start_worker()
    number = submit(store, SLOW)
    wait_until(lambda: len(cases(store, number)) >= 2)
    first.kill()
    first.wait()
    began = time.monotonic()
    assert find(store, number).status is Status.RUNNING
    start_worker()
    wait_until(lambda: find(store, number).status.is_final)
    found = find(store, number)
    assert found.status is Status.ACCEPTED
    assert (found.attempt, found.crashes) == (2, 1)
    assert judgements(store, number) == 1
    assert time.monotonic() - began < 2 * LEASE_S + 30


def test_a_polite_end_hands_the_submission_back(store, start_worker):
    first = start_worker()
    number = submit(store, SLOW)
    wait_until(lambda: len(cases(store, number)) >= 2)
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 0
    with store.read() as session:
        row = session.get(Submission, number)
        assert (row.status, row.crashes, row.worker, row.lease_until) == ("queued", 0, None, None)
    start_worker()
    wait_until(lambda: find(store, number).status.is_final)
    assert find(store, number).status is Status.ACCEPTED
    assert (find(store, number).attempt, judgements(store, number)) == (2, 1)
