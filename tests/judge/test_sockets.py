"""Folders for sockets are private and short, however long the usual places are."""

import os
import socket

import pytest

from judge.sockets import NAME_BYTES, socket_folder

NAME = f"shouxie-test-{os.getpid()}"


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    yield
    monkeypatch.undo()
    folder = socket_folder(NAME)
    folder.rmdir()


@pytest.mark.parametrize("length", [1, 40, 200])
def test_a_socket_fits_wherever_temporary_files_are(tmp_path, monkeypatch, length):
    long = tmp_path / ("x" * length)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", str(long))
    folder = socket_folder(NAME)
    with socket.socket(socket.AF_UNIX) as listener:
        path = folder / ("s" * NAME_BYTES)
        listener.bind(str(path))
        path.unlink()
    if folder.parent == long:
        folder.rmdir()


def test_somebody_elses_folder_is_refused(monkeypatch):
    folder = socket_folder(NAME)
    folder.chmod(0o755)
    with pytest.raises(PermissionError, match="only you can enter"):
        socket_folder(NAME)
    folder.chmod(0o700)
