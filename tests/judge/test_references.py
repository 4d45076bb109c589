"""The child that has a reference loaded and stays for the next verdict."""

from __future__ import annotations

import os
import signal

import pytest
from small_packages import write_package

from judge.core import frames
from judge.core.case import HIDDEN, Case
from judge.core.status import Status
from judge.exam import case_frame
from judge.sandbox.process import RESERVE_S

# Counts how often it was asked in its process: what a kept child knows, and a new one does not.
COUNTING = """
asked = 0

def f(n):
    global asked
    asked += 1
    return asked
"""
BURNING = """
import time

def f(n):
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
    return n
"""
DOUBLING = "def f(n):\n    return 2 * n\n"
CASES = """
def fixed():
    return {"second": {"n": 3}}

def teach():
    return {"small": {"n": 1}}

def generate(rng):
    return {"n": rng.integer(0, 99)}
"""


def small(folder, solution, more=None):
    files = {"cases.py": CASES, "solution.py": solution, "starter.py": "def f(n):\n    ...\n", **(more or {})}
    return write_package(folder, files=files, entry="f", signature="f(n)")


def asked(judge, prepared):
    reply = judge.run_reference(prepared, [case_frame(Case("one", HIDDEN, {"n": 1}))])[0]
    return frames.decode(reply).body if reply else None


@pytest.fixture
def prepared(judge, tmp_path):
    return judge._prepare(small(tmp_path / "390_small", COUNTING))


def kept(prepared):
    return prepared.references._kept


def test_one_child_answers_again_and_again(judge, prepared):
    first = asked(judge, prepared)
    assert [asked(judge, prepared) for _ in range(3)] == [first + 1, first + 2, first + 3]


def test_a_mistake_runs_in_a_child_of_its_own(judge, prepared):
    before = asked(judge, prepared)
    frame = case_frame(Case("one", HIDDEN, {"n": 7}))
    assert frames.decode(judge.run_mistake(prepared, DOUBLING, [frame])[0]).body == 14
    assert asked(judge, prepared) == before + 1


def test_a_kept_child_that_was_killed_is_replaced(judge, prepared):
    (child,) = kept(prepared)
    os.kill(child._pid, signal.SIGKILL)
    assert asked(judge, prepared) == 1


def test_each_round_has_all_the_limits(judge, tmp_path):
    """More CPU time in all than one submission may take, and not one round of it over the limit."""
    prepared = judge._prepare(small(tmp_path / "390_small", BURNING))
    (child,) = kept(prepared)
    total_ms = child.limits.total_ms
    rounds = 0
    while kept(prepared) == [child]:
        assert asked(judge, prepared) == 1
        rounds += 1
    # It stays until the kernel's own limit would be near, and no longer.
    assert child.cpu_ms() == 0.0 or child.cpu_ms() > RESERVE_S * 1000
    assert rounds * 400 > total_ms
    assert asked(judge, prepared) == 1


def test_no_child_outlives_its_problem(judge, tmp_path):
    package = small(tmp_path / "390_small", DOUBLING)
    prepared = judge._prepare(package)
    (child,) = kept(prepared)
    judge._shelf.drop(prepared)
    assert kept(prepared) == []
    with pytest.raises(ProcessLookupError):
        os.kill(child._pid, 0)


def test_two_at_once_are_both_answered(judge, prepared):
    jobs = [judge.background.submit(asked, judge, prepared) for _ in range(4)]
    assert all(job.result(60) for job in jobs)
    assert 1 <= len(kept(prepared)) <= 2


def test_what_equals_the_answer_is_accepted_without_evidence(judge, tmp_path):
    """The package's own check is asked about answers that differ, not about the answer itself."""
    check = "def check(inputs, got, want):\n    raise RuntimeError('asked')\n"
    package = small(tmp_path / "390_small", DOUBLING, {"check.py": check})
    assert judge.judge(package, DOUBLING.encode(), bytes(16)).status is Status.ACCEPTED
    other = judge.judge(package, b"def f(n):\n    return 2 * n + 1\n", bytes(16))
    assert {c.message.code for c in other.cases} == {"check_failed"}


def test_what_earlier_checks_left_in_cycles_takes_no_memory_from_later_ones(judge, tmp_path):
    """Each check leaves 600 MB in a cycle that the collector has no reason to look at; the checker may have 2 GB."""
    check = (
        "import torch\n\ndef check(inputs, got, want):\n"
        "    kept = [torch.empty(600 << 20, dtype=torch.uint8)]\n    kept.append(kept)\n    return []\n"
    )
    package = small(tmp_path / "390_small", DOUBLING, {"check.py": check})
    for _ in range(2):
        other = judge.judge(package, b"def f(n):\n    return 2 * n + 1\n", bytes(16))
        assert {c.status for c in other.cases} == {Status.WRONG_ANSWER}
