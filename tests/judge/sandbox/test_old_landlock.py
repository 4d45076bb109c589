"""Kernels whose Landlock is older than version 3 know nothing of a file's length: a file may not be cut there either."""

from __future__ import annotations

import subprocess
import sys

import pytest

from judge.packages import ROOT
from judge.sandbox import landlock

TRY = """
import json, os, sys
from judge.sandbox import confine, landlock, medium, seccomp
real = landlock.abi
landlock.abi = lambda: min(2, real())
libraries, base, *victims = sys.argv[1:]
doors = {
    "medium": lambda: medium.enter_child(
        confine.View((libraries,), (), base), confine.Resources(10, 1 << 40), rules, 0, os.geteuid() == 0
    ),
    "gpu": lambda: gpu(),
}
rules = seccomp.build_filter(writes=False)
deny = seccomp.build_deny_filter()

def gpu():
    os.chdir("/")
    from judge.sandbox import linux
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.restrict([libraries], [])
    deny.load()

doors[TIER]()
for victim in victims:
    for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_ACCMODE):
        try:
            os.close(os.open(victim, mode | os.O_TRUNC))
        except PermissionError:
            continue
print("done")
"""


@pytest.mark.skipif(not landlock.abi(), reason="a kernel without Landlock")
@pytest.mark.parametrize("tier", ["medium", "gpu"])
def test_no_file_can_be_cut(tmp_path, tier):
    inside, outside = tmp_path / "libraries" / "module.py", tmp_path / "elsewhere"
    inside.parent.mkdir()
    (tmp_path / "base").mkdir()
    for path in (inside, outside):
        path.write_text("text")
    places = [str(inside.parent), str(tmp_path / "base"), str(inside), str(outside)]
    run = subprocess.run(
        [sys.executable, "-c", TRY.replace("TIER", repr(tier)), *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout == "done\n", run.stderr
    assert [path.read_text() for path in (inside, outside)] == ["text", "text"]
