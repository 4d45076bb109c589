"""A judge that stays alive between two calls of the terminal command, so that the second takes milliseconds.

It listens on a Unix socket in a folder that only its user can enter, ends after some idle minutes, and is named after
the code it was started from: change the judge, the fakes or the engine, and the next call starts a new one.

A connection carries one request and its events, as lines of JSON:
    {"folder": ..., "source": base64, "seed": hex, "which": "all"}  ->  events of `Judge.judge`, then {"type": "done"}
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.sockets import socket_folder

ROOT = Path(__file__).resolve().parent.parent
IDLE_S = 15 * 60
START_DEADLINE_S = 90.0
ANSWER_DEADLINE_S = 300.0
CODE = ("judge", "tools", "fakes", "minisgl", "steps")


class LocalError(RuntimeError):
    """The local judge could not be reached or failed; the text says what to do."""


def stamp() -> str:
    """A name for the code as it is now: paths, sizes and times of every file that a judge is made of."""
    digest = hashlib.sha256(sys.executable.encode())
    for top in CODE:
        for folder, names, files in os.walk(ROOT / top):
            names[:] = sorted(n for n in names if n != "__pycache__")
            for name in sorted(files):
                if name.endswith((".py", ".toml")):
                    info = os.stat(os.path.join(folder, name))
                    digest.update(f"{folder}/{name} {info.st_size} {info.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def socket_path() -> Path:
    """Where this code's judge listens. Raises LocalError if the folder belongs to somebody else."""
    try:
        return socket_folder(f"shouxie-judge-{os.getuid()}") / f"{stamp()}.sock"
    except PermissionError as error:
        raise LocalError(str(error)) from None


def request(folder: Path, source: bytes, seed: bytes, which: str) -> Iterator[dict[str, Any]]:
    """Judge a submission; yields the events. Starts the local judge if there is none. Raises LocalError."""
    connection = _connect(socket_path())
    connection.settimeout(ANSWER_DEADLINE_S)
    with connection, connection.makefile("rwb") as stream:
        body = {
            "folder": str(folder),
            "source": base64.b64encode(source).decode(),
            "seed": seed.hex(),
            "which": which,
        }
        try:
            stream.write(json.dumps(body).encode() + b"\n")
            stream.flush()
            for line in stream:
                event = _event(line)
                if event["type"] == "done":
                    return
                if event["type"] == "error":
                    raise LocalError(str(event.get("text")))
                yield event
        except OSError as error:
            raise LocalError(f"the local judge did not answer: {error}") from error
    raise LocalError(
        "the local judge ended in the middle; its log is beside its socket: " + str(_log(socket_path()))
    )


def _event(line: bytes) -> dict[str, Any]:
    """A line of the local judge. Raises LocalError for one that no judge of ours writes."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    kind = event.get("type") if isinstance(event, dict) else None
    needs = (
        {"verdict": ("verdict", dict), "case": ("case", dict)}.get(kind) if isinstance(kind, str) else None
    )
    if not isinstance(kind, str) or (needs is not None and not isinstance(event.get(needs[0]), needs[1])):
        raise LocalError(
            f"what listens at {socket_path()} is no judge of this code: end it, remove the file, and try again"
        )
    result: dict[str, Any] = event
    return result


def running() -> bool:
    """Whether a judge of this code is alive already."""
    return _try_connect(socket_path(), close=True) is not None


def _log(path: Path) -> Path:
    return path.with_suffix(".log")


def _try_connect(path: Path, close: bool = False) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    if close:
        connection.close()
    return connection


def _connect(path: Path) -> socket.socket:
    connection = _try_connect(path)
    if connection is not None:
        return connection
    with open(_log(path), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "judge.local", str(path)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    end = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < end:
        connection = _try_connect(path)
        if connection is not None:
            return connection
        code = process.poll()
        if code not in (None, 0):  # 0: another one was faster and has the socket
            raise LocalError(
                f"the local judge did not start:\n{_log(path).read_text(errors='replace')[-2000:]}"
            )
        time.sleep(0.02)
    raise LocalError(f"the local judge did not start within {START_DEADLINE_S:.0f} s; see {_log(path)}")


class Server:
    """The process behind the socket. Invariant: `busy` counts the connections being served; it ends only at zero."""

    def __init__(self, path: Path) -> None:
        from judge.judge import Judge

        self.path = path
        self.judge = Judge(children=max(1, min(4, os.cpu_count() or 1)), tiers=("strong", "medium", "local"))
        self.busy = 0
        self.used_at = time.monotonic()
        self.lock = threading.Lock()

    def run(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        # Bound under another name and renamed: whoever sees the socket can connect to it.
        building = self.path.with_suffix(f".{os.getpid()}")
        listener.bind(str(building))
        listener.listen(16)
        if _try_connect(self.path, close=True) is not None:
            building.unlink()
            return
        os.replace(building, self.path)
        listener.settimeout(5.0)
        threading.Thread(target=self.judge.start, daemon=True).start()
        try:
            while not self._idle():
                with contextlib.suppress(TimeoutError):
                    connection, _ = listener.accept()
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        finally:
            self.path.unlink(missing_ok=True)
            self.judge.close()
            _log(self.path).unlink(missing_ok=True)

    def _idle(self) -> bool:
        with self.lock:
            return not self.busy and time.monotonic() - self.used_at > IDLE_S

    def _serve(self, connection: socket.socket) -> None:
        with self.lock:
            self.busy += 1
        try:
            connection.settimeout(ANSWER_DEADLINE_S)
            with connection, connection.makefile("rwb") as stream:
                line = stream.readline()
                if line:
                    self._answer(json.loads(line), stream)
        except (OSError, ValueError):
            pass  # the caller is gone (Ctrl-C), or was none of ours
        finally:
            with self.lock:
                self.busy -= 1
                self.used_at = time.monotonic()

    def _answer(self, body: dict[str, Any], stream: Any) -> None:
        from judge.judge import JudgeError
        from judge.packages import PackageError, load_package

        lock = threading.Lock()

        def say(event: dict[str, Any]) -> None:
            with lock:
                stream.write(json.dumps(event).encode() + b"\n")
                stream.flush()

        try:
            package = load_package(Path(body["folder"]))
            self.judge.judge(
                package,
                base64.b64decode(body["source"]),
                bytes.fromhex(body["seed"]),
                which=body["which"],
                on_event=say,
            )
        except (JudgeError, PackageError) as error:
            say({"type": "error", "text": str(error)})
            return
        say({"type": "done"})


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Server(Path(sys.argv[1])).run()


if __name__ == "__main__":
    main()
