"""A real server, started as a person would, in a session of its own so that what is left of it can be seen."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 90.0


class Server:
    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self._folder = folder
        self._stderr = folder / "stderr"
        self.url = ""

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(encoding="utf-8")

    def socket_folders(self) -> list[Path]:
        return list(self._folder.glob("minisgl-*"))

    def pid_of(self, name: str) -> int:
        found = re.search(rf"{name} is process (\d+)", self.stderr)
        assert found, self.stderr
        return int(found[1])

    def status(self) -> dict[str, int]:
        response = httpx2.get(f"{self.url}/health", timeout=WAIT_S, trust_env=False)
        assert response.status_code == 200, response.text
        return response.json()

    def wait_until_idle(self) -> dict[str, int]:
        """The status, once nothing runs or waits."""
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            status = self.status()
            if not status["running"] and not status["waiting"]:
                return status
            time.sleep(0.02)
        raise AssertionError(f"still busy: {status}")

    def left(self) -> list[int]:
        """Processes of the server's session that are alive."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            except OSError:  # it has just ended
                continue
            if int(session) == self.process.pid and state != "Z":
                found.append(int(stat.parent.name))
        return found

    def wait_until_gone(self) -> None:
        eventually(lambda: not self.left(), f"still there: {self.left()}\n{self.stderr}")


def eventually(holds: Callable[[], bool], otherwise: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


@contextmanager
def launched(*arguments: str, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """`python -m minisgl` with these arguments; at the end, whatever is left of it is killed."""
    with tempfile.TemporaryDirectory() as folder:
        stderr = Path(folder) / "stderr"
        with stderr.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "minisgl", *arguments],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "OMP_NUM_THREADS": "1",
                    "TMPDIR": folder,
                    **(environment or {}),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        server = Server(process, Path(folder))
        try:
            yield server
        finally:
            for pid in server.left():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            process.communicate(timeout=WAIT_S)


@contextmanager
def serving(model: Path, *flags: str, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """A server that is ready."""
    arguments = ("--model", str(model), "--served-model-name", "tiny", "--port", "0", *flags)
    with launched(*arguments, environment=environment) as server:
        assert server.process.stdout is not None
        line = server.process.stdout.readline()
        assert line, server.stderr
        server.url = line.split()[-1]
        yield server
