"""What happens to a submission that is being judged when something of the judge goes or dies beside it: whatever it was, it
is no verdict."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_packages import write_package

from judge import rpc
from judge.checker import Checker, CheckerClient, Unknown
from judge.core.status import Status
from judge.judge import Judge

SEED = bytes(range(16))
CASES = """
def fixed():
    return {"second": {"n": 3}}

def teach():
    return {"small": {"n": 1}}

def generate(rng):
    return {"n": rng.integer(0, 99)}
"""
DOUBLING = "def f(n):\n    return 2 * n\n"
BUSY_S = 1.0
# Right, and busy for a while before its first case: whoever loses its process then has nothing else to go by.
SLOW = f"import time\nend = time.process_time() + {BUSY_S}\nwhile time.process_time() < end:\n    pass\n{DOUBLING}"


def small(folder, number):
    """A problem of this test alone: no judge has prepared it, as its version is that of its files."""
    files = {"cases.py": CASES, "solution.py": DOUBLING, "starter.py": f"# {folder}\ndef f(n):\n    ...\n"}
    return write_package(folder / f"{number}_small", files=files, id=number, entry="f", signature="f(n)")


class Beside:
    """A right submission on a thread of its own, and how far it is."""

    def __init__(self, judge, package):
        self.began = threading.Event()
        self.verdict = None
        self._thread = threading.Thread(target=self._run, args=(judge, package))
        self._thread.start()
        assert self.began.wait(60)
        time.sleep(0.4 * BUSY_S)  # it is loading now

    def _run(self, judge, package):
        self.verdict = judge.judge(package, SLOW.encode(), SEED, on_event=lambda event: self.began.set())

    def status(self):
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.verdict.status if self.verdict else None


@pytest.fixture(scope="module", params=["strong", "medium"])
def own_judge(request) -> Iterator[Judge]:
    """One that keeps no problem but the one used last."""
    with Judge(children=3, keep_mb=0, tiers=(request.param,)) as judge:
        yield judge


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def busy_guards(judge):
    """Guards of submissions whose child runs, by the CPU time that it has used."""
    found = []
    for stage in children_of(judge._submissions._process.pid):
        for guard in children_of(stage):
            for child in children_of(guard):
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                if fields[0] == "R":
                    found.append(guard)
    return found


def test_a_problem_that_is_in_use_is_closed_when_it_no_longer_is(own_judge, tmp_path):
    first, second = small(tmp_path, 391), small(tmp_path, 392)
    own_judge.warm(first)
    prepared = own_judge._shelf.held[first.version]
    slower = Beside(own_judge, first)
    assert own_judge.judge(second, DOUBLING.encode(), SEED).status is Status.ACCEPTED
    assert list(own_judge._shelf.held) == [second.version]
    assert slower.status() is Status.ACCEPTED
    assert prepared.dropped
    assert prepared.users == 0
    assert prepared.references._kept == []


def test_what_is_let_go_ends_with_its_last_user(own_judge, tmp_path):
    package = small(tmp_path, 391)
    with own_judge._using(package) as prepared, own_judge._using(package) as same:
        assert same is prepared
        (child,) = prepared.references._kept
        own_judge._shelf.drop(prepared)
        with own_judge._using(package) as fresh:
            assert fresh is not prepared
            own_judge._shelf.drop(
                prepared
            )  # as another one whose run failed with the old one would: no harm to the new one
            assert own_judge._shelf.held[package.version] is fresh
        os.kill(child._pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(child._pid, 0)


def test_a_guard_that_dies_is_no_verdict(own_judge, tmp_path):
    package = small(tmp_path, 391)
    own_judge.warm(package)
    slower = Beside(own_judge, package)
    guards = busy_guards(own_judge)
    assert guards
    for guard in guards:
        os.kill(guard, signal.SIGKILL)
    assert slower.status() is Status.ACCEPTED


@pytest.fixture(scope="module")
def wide_judge() -> Iterator[Judge]:
    with Judge(children=3) as judge:
        yield judge


@pytest.mark.parametrize("victim", ["_checker", "_submissions", "_references"])
def test_a_process_that_dies_harms_none_of_those_that_are_judged(wide_judge, victim, tmp_path):
    package = small(tmp_path, 391)
    wide_judge.warm(package)
    slower = [Beside(wide_judge, package) for _ in range(2)]
    process = getattr(wide_judge, victim)._process
    process.kill()
    process.wait(10)
    assert wide_judge.judge(package, DOUBLING.encode(), SEED).status is Status.ACCEPTED
    assert [s.status() for s in slower] == [Status.ACCEPTED] * 2


def test_a_problem_in_use_stays_with_the_checker_however_many_others_come(tmp_path, monkeypatch):
    monkeypatch.setattr("judge.checker.KEEP_EXAMS", 3)
    checker = Checker()
    packages = [small(tmp_path, 391 + i) for i in range(6)]
    popular = packages[0].version
    for package in packages:
        checker.prepare({"folder": str(package.folder)}, [])
        assert checker._exam(popular).package.version == popular
    assert len(checker.exams) == 3
    with pytest.raises(Unknown):
        checker._exam(packages[1].version)


ABOUT_NOTHING = [
    ("open", {"version": "0", "seed": "00", "which": "all", "lines": 1}),
    ("learn", {"version": "0", "name": ""}),
    ("learn_drawn", {"sitting": 1, "name": ""}),
    ("check", {"sitting": 1, "index": 0, "cpu_ms": 0.0}),
    ("end", {"sitting": 1, "index": 0, "status": "not_run", "message": None}),
    ("loading", {"sitting": 1}),
    ("possible_mistakes", {"sitting": 1}),
    ("finish", {"sitting": 1}),
    ("step", {"version": "0", "dialogue": None, "sitting": None}),
]


def test_a_checker_survives_what_it_does_not_know():
    client = CheckerClient()
    try:
        for do, request in ABOUT_NOTHING:
            with pytest.raises(rpc.ConnectionLost, match="not with this checker"):
                client.call(do, [b"", b""], **request)
        assert client.alive
        assert "torch" in client.call("hello")[0]
    finally:
        client.close()


def test_a_step_of_another_checkers_dialogue_is_no_broken_reply(tmp_path):
    checker = Checker()
    package = small(tmp_path, 391)
    checker.prepare({"folder": str(package.folder)}, [])
    for sitting in (None, 1):
        with pytest.raises(Unknown):
            checker.step({"version": package.version, "dialogue": 7, "sitting": sitting}, [b""])


def test_no_two_checkers_give_out_the_same_numbers():
    first = Checker()
    given = {next(first.numbers) for _ in range(1000)}
    assert next(Checker().numbers) > max(given)


def test_a_problem_that_is_ready_does_not_wait_for_one_that_is_prepared(judge, monkeypatch, tmp_path):
    first, second = small(tmp_path, 391), small(tmp_path, 392)
    judge.warm(first)
    began, go_on = threading.Event(), threading.Event()
    make_ready = judge._make_ready

    def slowly(package):
        began.set()
        assert go_on.wait(60)
        return make_ready(package)

    monkeypatch.setattr(judge, "_make_ready", slowly)
    verdicts = []
    other = threading.Thread(
        target=lambda: verdicts.append(judge.judge(second, DOUBLING.encode(), SEED).status)
    )
    other.start()
    assert began.wait(60)
    ready = threading.Thread(
        target=lambda: verdicts.append(judge.judge(first, DOUBLING.encode(), SEED).status)
    )
    ready.start()
    ready.join(30)
    assert verdicts == [Status.ACCEPTED], "it waited"
    go_on.set()
    other.join(60)
    assert verdicts == [Status.ACCEPTED, Status.ACCEPTED]
