"""The one command: it starts what it needs, brings back what dies, and takes everything with it when it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
START_S = 300.0  # a deadline, no expectation: on a machine with five times the work it has cores for, torch takes minutes


class Served:
    """`python -m web.serve` with a data folder of its own; its output is read all the time."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        env = {k: v for k, v in os.environ.items() if not k.startswith("COURSE_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "web.serve", *arguments],
            cwd=ROOT,
            env=env | {"COURSE_DATA_DIR": str(data), "COURSE_PREPARE_PROBLEMS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.output += line

    def wait_for(self, pattern: str, times: int = 1) -> list[str]:
        ends = time.monotonic() + START_S
        while time.monotonic() < ends:
            found = re.findall(pattern, self.output)
            if len(found) >= times:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"{pattern!r} did not come in:\n{self.output}")

    def children(self) -> dict[str, int]:
        """Process ids by what they run: the direct children only."""
        found = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            found["web" if "gunicorn" in command else "worker"] = int(pid)
        return found

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(30)
        self._reader.join(5)
        return code


def answers(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One site for two tests; the second ends it."""
    served = Served(tmp_path_factory.mktemp("served"), "--port", "0")
    yield served
    served.end()


def test_the_worker_does_not_learn_the_token(served):
    [token] = served.wait_for(r"/enter\?token=(\S+)")
    worker = served.children()["worker"]
    assert token.encode() not in Path(f"/proc/{worker}/environ").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc to see child processes")
def test_it_brings_back_what_dies_and_ends_with_all(served):
    try:
        [address] = served.wait_for(r"http://\S+/enter\?token=\S+")
        served.wait_for("worker_ready")
        base = address.partition("/enter")[0]
        assert answers(address) == 403  # the redirect goes on without its cookie
        assert answers(base) == 403
        before = served.children()
        os.kill(before["worker"], signal.SIGKILL)
        os.kill(before["web"], signal.SIGKILL)
        served.wait_for("(?:web|worker) ended .signal SIGKILL.", times=2)
        served.wait_for("worker_ready", times=2)
        after = served.children()
        assert after.keys() == before.keys()
        assert not set(after.values()) & set(before.values())
        ends = time.monotonic() + START_S
        while time.monotonic() < ends:
            try:
                assert answers(base) == 403
                break
            except urllib.error.URLError:
                time.sleep(0.1)
    finally:
        code = served.end(signal.SIGINT)
    assert code == 0
    for pid in after.values():
        assert not Path(f"/proc/{pid}").exists()
    assert (served.data / "course.db").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "not a loopback address"),
        (["--port", "70000"], "setting port"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, arguments, words):
    served = Served(tmp_path, *arguments)
    assert served.process.wait(START_S) == 2
    served.end()
    assert words in served.output
    assert "Traceback" not in served.output


def test_a_port_in_use_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        served = Served(tmp_path, "--port", str(port))
        assert served.process.wait(START_S) == 2
    served.end()
    assert f"port {port}" in served.output
    assert "PORT=" in served.output


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_nothing_is_left_when_the_supervisor_is_killed(tmp_path):
    served = Served(tmp_path, "--port", "0")
    try:
        served.wait_for("worker_ready")
        children = served.children()
    finally:
        served.end(signal.SIGKILL)
    ends = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in children.values()):
        assert time.monotonic() < ends
        time.sleep(0.05)
