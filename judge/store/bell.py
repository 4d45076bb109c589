"""Waking a worker. A bell is only a hint that there may be work: the row is the truth, and a worker that
hears nothing looks once a second. Local datagram sockets, one for each listener, in a folder of their
own."""

from __future__ import annotations

import hashlib
import os
import select
import socket
from contextlib import suppress
from pathlib import Path

from judge.sockets import socket_folder

BINDS = 5


def bell_folder(url: str, *, make: bool = True) -> Path:
    """The folder of the sockets of one database, private to this user. Raises PermissionError if somebody else made
    it. Without `make`, for those who only ring, it is not made."""
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    return socket_folder(f"course-{os.getuid()}-{name}", make=make)


def ring(folder: Path) -> None:
    """Wake every listener. Never waits: a full socket has a wake-up in it already. Sockets of the dead are
    removed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.setblocking(False)
        for path in folder.glob("*.sock"):
            try:
                bell.sendto(b"!", str(path))
            except BlockingIOError:
                continue
            except (ConnectionRefusedError, FileNotFoundError):
                path.unlink(missing_ok=True)


class Ear:
    """Listens for `ring`. Close it, or its socket's file stays until the next ring."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{os.getpid()}-{os.urandom(4).hex()}.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        for _ in range(BINDS):
            try:
                self._socket.bind(str(self.path))
                return
            except FileNotFoundError:  # the last one who listened has just taken the folder away
                folder.mkdir(mode=0o700, exist_ok=True)
        raise FileNotFoundError(f"{folder} is taken away again and again")

    def wait(self, timeout_s: float) -> bool:
        """True when a bell rang within `timeout_s` seconds; all bells rung so far count as one."""
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        if not ready:
            return False
        while True:
            try:
                self._socket.recv(16)
            except BlockingIOError:
                return True

    def wake(self) -> None:
        """Make a `wait` of this very ear return: safe to call from a signal handler or another thread."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.setblocking(False)
            try:
                bell.sendto(b"!", str(self.path))
            except BlockingIOError:
                return

    def close(self) -> None:
        self._socket.close()
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # others listen there still
            self.path.parent.rmdir()
