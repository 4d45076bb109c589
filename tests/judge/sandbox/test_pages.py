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
import ctypes
import mmap
import os
from pathlib import Path
from judge.sandbox import pages

held = [bytes([i % 251]) * (1 << 20) for i in range(64)]
refused = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE)
refused.madvise(mmap.MADV_NOHUGEPAGE)
refused.write(b"x" * (8 << 20))
at = ctypes.addressof(ctypes.c_char.from_buffer(refused))
found = sorted(pages._anonymous(), key=lambda r: not r[0] <= at < r[1])  # what is refused comes first
assert found[0][0] <= at < found[0][1]
pages._anonymous = lambda: found
if OLD:
    pages.MADV_COLLAPSE = 9999  # what no kernel knows
pages.collapse()
assert all(h == bytes([i % 251]) * (1 << 20) for i, h in enumerate(held))
child = os.fork()
if child == 0:
    held[0] = b"mine"
    os._exit(0 if held[63][:1] == bytes([63]) else 1)
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
    """All but what may not: one range that is refused does not keep the others back."""
    possible = kernel() >= (6, 1) and pages.SIZE_FILE.exists()
    assert (huge_mb(old=False) >= 32) is possible


def test_an_older_kernel_leaves_all_as_it_was():
    assert huge_mb(old=True) == 0


def test_what_no_kernel_file_says_is_left_alone(monkeypatch):
    monkeypatch.setattr(pages, "SIZE_FILE", Path("/nonexistent"))
    monkeypatch.setattr(pages, "_anonymous", lambda: pytest.fail("asked for memory without a size of pages"))
    pages.collapse()
