"""A worker whose lease was given to another stops that run, throws its result away, and works on; what else a worker
makes of what it finds in the queue."""

from __future__ import annotations

import shutil
import threading
import time

import pytest
from sqlalchemy import func, select, update

from judge.core.status import Status
from judge.packages import load_package, survey
from judge.store import Judgement, Queue, Submission, reading
from judge.store.clock import now
from judge.worker import Worker

pytestmark = pytest.mark.slow
PACKAGES = survey().packages
SOLUTION = PACKAGES[200].solution
SLOW = SOLUTION.replace("import torch\n", "import time\n\nimport torch\n", 1).replace(
    "page_size):\n", "page_size):\n    time.sleep(0.25)\n", 1
)


@pytest.fixture(scope="module")
def judge(judge):
    judge.warm(PACKAGES[200])
    return judge


@pytest.fixture
def worker(store, judge, monkeypatch):
    monkeypatch.setattr("judge.worker.HEARTBEAT_S", 0.2)
    made = Worker(store, judge, PACKAGES, slots=1)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join(30)
    assert not thread.is_alive()


def submit(queue, source):
    return queue.submit(user="local", problem=200, version=PACKAGES[200].version, source=source.encode())


def find(store, number):
    with store.read() as session:
        return reading.find(session, "local", number)


def wait_until(what):
    ends = time.monotonic() + 60
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_lost_run_is_stopped_and_the_worker_goes_on(store, worker, verdict):
    queue = Queue(store)
    number = submit(queue, SLOW)
    wait_until(lambda: find(store, number).attempt == 1 and find(store, number).total)
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == number).values(lease_until=now() - 1))
    assert queue.recover() == 1
    claim = queue.claim("another")
    assert (claim.submission, claim.attempt) == (number, 2)
    began = time.monotonic()
    following = submit(queue, SOLUTION)
    wait_until(lambda: find(store, following).status.is_final)
    assert find(store, following).status is Status.ACCEPTED
    assert time.monotonic() - began < 5  # the lost run, seconds long, was not waited for
    assert find(store, number).status is Status.RUNNING
    assert queue.finish(claim, verdict | {"status": "wrong_answer"})
    assert find(store, number).status is Status.WRONG_ANSWER


def test_a_problem_that_does_not_exist_gets_a_verdict(store, worker):
    number = Queue(store).submit(user="local", problem=999, version="0" * 16, source=b"x = 1")
    wait_until(lambda: find(store, number).status.is_final)
    assert find(store, number).status is Status.SYSTEM_ERROR
    with store.read() as session:
        assert session.scalar(select(func.count()).where(Judgement.submission == number)) == 1


def test_what_crashed_a_worker_runs_with_nothing_beside_it(store, judge, monkeypatch):
    """Two slots, one submission that has crashed before: the next waits until it is done."""
    queue = Queue(store)
    risky, calm = submit(queue, SLOW.replace("0.25", "0.05")), submit(queue, SOLUTION)
    with store.write() as session:
        session.execute(update(Submission).where(Submission.id == risky).values(crashes=1))
    together = []
    worker = Worker(store, judge, PACKAGES, slots=2)
    take = worker.queue.claim

    def claim(name):
        taken = take(name)
        if taken and taken.submission == calm:
            together.append(find(store, risky).status.is_final)
        return taken

    monkeypatch.setattr(worker.queue, "claim", claim)
    thread = threading.Thread(target=worker.run)
    thread.start()
    wait_until(lambda: find(store, calm).status.is_final)
    worker.stop()
    thread.join(30)
    assert together == [True]
    assert find(store, risky).status is Status.ACCEPTED


def test_a_package_edited_while_the_worker_runs_is_read_again(store, judge, tmp_path):
    folder = tmp_path / "problem"
    shutil.copytree(PACKAGES[200].folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "starter.py").write_text("# as no judge has prepared it\n")
    package = load_package(folder)
    worker = Worker(store, judge, {200: package}, slots=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        (folder / "starter.py").write_text("# edited\n")
        number = Queue(store).submit(
            user="local", problem=200, version=package.version, source=SOLUTION.encode()
        )
        wait_until(lambda: find(store, number).status.is_final)
        assert find(store, number).status is Status.ACCEPTED
        assert worker.packages[200].version == load_package(folder).version != package.version
    finally:
        worker.stop()
        thread.join(30)
