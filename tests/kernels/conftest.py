"""Tests of kernels through their public interface only, so that the same files hold the fakes to the
definition on a CPU and the real packages on a GPU:

    KERNELS=real python -m pytest --confcutdir=tests/kernels -o pythonpath=. tests/kernels

With the fakes every test starts strict, in a context that is alive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from place import REAL


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    if REAL:
        yield
        return
    from fake_kernels import mode

    mode.new_context()
    with mode.use("strict"):
        yield
    mode.new_context()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """On a GPU a later test may end the whole process: what failed is told at once."""
    if REAL and report.failed:
        print(f"\n{report.nodeid}\n{report.longreprtext[-3000:]}", file=sys.__stderr__, flush=True)
