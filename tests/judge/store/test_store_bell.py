"""The bell wakes those who listen, never waits, and clears up after the dead."""

from __future__ import annotations

import tempfile
import threading
import time

import pytest

from judge.store.bell import Ear, bell_folder, ring


@pytest.fixture
def folder(monkeypatch):
    """A bell folder in a folder of its own with a short path; pytest's are long."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with tempfile.TemporaryDirectory(prefix="bell-", dir="/tmp") as short:
        monkeypatch.setattr("tempfile.tempdir", short)
        yield bell_folder("sqlite:////somewhere/course.db")


def test_a_ring_wakes_every_listener(folder):
    ears = [Ear(folder), Ear(folder)]
    threading.Timer(0.1, ring, (folder,)).start()
    began = time.monotonic()
    assert all(ear.wait(5.0) for ear in ears)
    assert time.monotonic() - began < 3.0
    for ear in ears:
        ear.close()


def test_without_a_ring_the_wait_ends(folder):
    ear = Ear(folder)
    assert not ear.wait(0.05)
    ear.close()


def test_many_rings_never_block_and_count_as_one(folder):
    ear = Ear(folder)
    for _ in range(2000):
        ring(folder)
    assert ear.wait(1.0)
    assert not ear.wait(0.05)
    ear.close()


def test_the_socket_of_a_dead_listener_is_removed(folder):
    dead = Ear(folder)
    dead._socket.close()
    ring(folder)
    assert list(folder.iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(folder):
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="TMPDIR"):
        bell_folder("sqlite:////somewhere/course.db")


def test_nothing_is_left_behind(folder):
    one, two = Ear(folder), Ear(folder)
    one.close()
    assert folder.is_dir()
    two.close()
    assert not folder.exists()
    ring(folder)
    assert bell_folder("sqlite:////somewhere/course.db", make=False) == folder
    assert not folder.exists(), "who only rings makes no folder"
    Ear(folder).close()  # as if the folder had gone between its making and this


def test_a_folder_of_somebody_else_is_not_rung_in(folder):
    folder.chmod(0o777)
    with pytest.raises(PermissionError):
        bell_folder("sqlite:////somewhere/course.db", make=False)
