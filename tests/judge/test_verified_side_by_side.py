"""Problems are verified in threads of one process; a check may set what a process has once, as the engine's context."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from small_packages import write_package

from tools import problem_checks

CASES = """
def fixed():
    return {f"case {n}": {"n": n} for n in range(6)}

def teach():
    return {}
"""
# Says so if it runs twice at once: `sys` is one for all.
CHECK = """
import sys
import time

def check(inputs, got, want):
    if getattr(sys, "_somebody_checks", False):
        raise RuntimeError("a check is running already")
    sys._somebody_checks = True
    try:
        time.sleep(0.01)
    finally:
        sys._somebody_checks = False
    return []
"""


def test_no_two_checks_run_at_once(judge, tmp_path):
    judge.start()
    files = {"cases.py": CASES, "check.py": CHECK, "solution.py": "def f(n):\n    return n * 0\n"}
    packages = [
        write_package(tmp_path / f"39{i}_small", files=files, id=390 + i, entry="f", signature="f(n)")
        for i in range(3)
    ]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda p: problem_checks.forged_answers(p, judge.references), packages))
    # All answers are 0: only what is put in their place from the inputs is told apart.
    assert all(len(complaints) == 1 for complaints in found), found
