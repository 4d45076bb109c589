"""Huge pages under what children share."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from judge.packages import ROOT
from judge.sandbox import pages

# Holds 64 MB that differ by page, collapses, and says how much is in huge pages and whether all is as it was.
TRY = """
import os
from pathlib import Path
from judge.sandbox import pages

held = [bytes([i % 251]) * (1 << 16) for i in range(1024)]
if OLD:
    pages.MADV_COLLAPSE = 9999  # what no kernel knows
pages.collapse()
assert all(h == bytes([i % 251]) * (1 << 16) for i, h in enumerate(held))
child = os.fork()
if child == 0:
    held[0] = b"mine"
    os._exit(0 if held[1023][:1] == bytes([1023 % 251]) else 1)
assert os.waitpid(child, 0)[1] == 0
rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
print(next(int(row.split()[1]) for row in rows if row.startswith("AnonHugePages")) // 1024)
"""


def huge_mb(old: bool) -> int:
    program = TRY.replace("OLD", str(old))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


def test_memory_moves_into_huge_pages_and_stays_what_it_was():
    possible = sys.platform == "linux" and kernel() >= (6, 1) and pages.SIZE_FILE.exists()
    if not possible:
        pytest.skip("MADV_COLLAPSE came with Linux 6.1, and needs a kernel with huge pages")
    assert huge_mb(old=False) >= 32


def test_an_older_kernel_leaves_all_as_it_was():
    assert huge_mb(old=True) == 0


def test_what_no_kernel_file_says_is_left_alone(monkeypatch):
    monkeypatch.setattr(pages, "SIZE_FILE", Path("/nonexistent"))
    monkeypatch.setattr(pages, "_anonymous", lambda: pytest.fail("asked for memory without a size of pages"))
    pages.collapse()
