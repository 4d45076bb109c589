"""What the terminal command believes of a local judge: lines of its own form only."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from judge import local


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON\n",
        b"\xff\xfe\n",
        b"[1]\n",
        b"null\n",
        b"{}\n",
        b'{"type": 1}\n',
        b'{"type": ["done"]}\n',
        b'{"type": "verdict"}\n',
        b'{"type": "verdict", "verdict": null}\n',
        b'{"type": "case", "case": 3}\n',
        b'{"type": "error"}\n',
        b'{"type": "start"',
        b"",
    ],
)
def test_a_line_that_no_judge_writes_is_told_as_such(tmp_path, monkeypatch, line):
    path = tmp_path / "s"
    monkeypatch.setattr(local, "socket_path", lambda: path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(line)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(local.LocalError):
            list(local.request(Path("folder"), b"", bytes(16), "all"))
        thread.join(10)
