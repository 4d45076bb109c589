"""What comes of wrong calls: the same with real kernels, each in a process of its own, and with faithful fakes.

    KERNELS=real PYTHONPATH=tests/kernels python tests/kernels/test_kernels_wrong_calls.py "NAME PATH"

makes one call and prints what came of it.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import wrong_others  # noqa: F401  fills the table, as the next does
import wrong_paged  # noqa: F401
from place import REAL
from wrong_calls import CALLS, came, what_came

RIGHT_INDEED = (
    *(f"last_page_len_of_an_empty_request {path}" for path in ("dec", "tc", "fa2")),
    "out_with_gaps fa3",
    "flash_q_in_columns sgl",
    "flash_strided_cu_seqlens sgl",
    "rotary_dim_24_of_64_interleaved rows",
)
"""Not wrong at all: the library copies, or this kernel is made for it."""

COMPILING_S, RUNNING_S = 200, 45
"""Seconds for a call that may compile a kernel, and for one whose kernel is there: what is not back then hangs."""


def in_a_process(name: str) -> str:
    """What came of a call to the real kernels. A signal is how a process dies."""
    command = [sys.executable, __file__, name]
    limit = RUNNING_S if CALLS[name].outcome == "hangs" else COMPILING_S
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode < 0:
        assert -done.returncode in (signal.SIGFPE, signal.SIGSEGV), done.stderr[-2000:]
        return "dies"
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


def acted_out(name: str) -> str:
    """What a faithful fake makes of it: what would end or stop the process it tells."""
    from fake_kernels import mode

    with mode.use("faithful"):
        told = came(CALLS[name])
    endings = {"ends the process": "dies", "does not come back": "hangs"}
    return next((word for sentence, word in endings.items() if sentence in told), told)


@pytest.mark.parametrize("name", CALLS)
def test_what_comes_of_it(name: str) -> None:
    outcome = CALLS[name].outcome
    told = in_a_process(name) if REAL else acted_out(name)
    kind, _, words = outcome.partition(": ")
    if not words:
        assert told.partition(": ")[0] == outcome
    else:
        assert told.startswith(f"{kind}: ")
        assert words in told


@pytest.mark.skipif(REAL, reason="fakes alone are strict")
@pytest.mark.parametrize("name", CALLS)
def test_strict_fakes_refuse_what_is_wrong_and_what_is_right_by_luck(name: str) -> None:
    from fake_kernels.errors import KernelError

    call = CALLS[name]
    if name in RIGHT_INDEED:
        assert what_came(*call.call(call.path)) == "right"
    else:
        with pytest.raises(KernelError):
            call.call(call.path)


if __name__ == "__main__":
    print(came(CALLS[sys.argv[1]]), flush=True)
