"""Several workers on one SQLite file: processes of their own, as in life."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sqlalchemy import func, select

from judge.store import Judgement, Submission

ROOT = Path(__file__).resolve().parents[3]
SUBMISSIONS = 120
DRAIN = """
import sys
from judge.store import Queue, Store
from judge.store.queue import system_error
store = Store(sys.argv[1])
queue = Queue(store)
while claim := queue.claim(sys.argv[2]):
    queue.started(claim, 1)
    verdict = system_error(claim.problem, claim.version, "system_error") | {"status": "accepted"}
    print(claim.submission, queue.finish(claim, verdict))
"""


def test_nothing_is_lost_and_nothing_is_done_twice(store, submit):
    for n in range(SUBMISSIONS):
        submit(user=f"u{n % 9}")
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", DRAIN, store.url, f"w{n}"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for n in range(2)
    ]
    outputs = [w.communicate(timeout=120)[0].splitlines() for w in workers]
    assert [w.returncode for w in workers] == [0, 0]
    done = [line.split() for lines in outputs for line in lines]
    assert sorted(int(number) for number, _ in done) == list(range(1, SUBMISSIONS + 1))
    assert {finished for _, finished in done} == {"True"}
    with store.read() as session:
        assert session.scalar(select(func.count(func.distinct(Judgement.submission)))) == SUBMISSIONS
        assert session.scalar(select(func.count()).select_from(Judgement)) == SUBMISSIONS
        assert session.scalars(select(Submission.attempt).distinct()).all() == [1]
