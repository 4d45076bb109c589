"""The front end is built once for each state of its sources, and a fault is told in a sentence."""

from __future__ import annotations

import json
import os
import time

import pytest
from click.testing import CliRunner

from tools import frontend


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A build folder that claims to be made from sources "a"."""
    monkeypatch.setattr(frontend, "BUILD", tmp_path)
    (tmp_path / "page-1.js").write_text("x")
    (tmp_path / "manifest.json").write_text(json.dumps({"sources": "a", "files": {"page.js": "page-1.js"}}))
    return tmp_path


def test_what_is_built_from_these_sources_is_current(built):
    assert frontend.is_current("a")


def test_a_changed_source_is_not_current(built):
    assert not frontend.is_current("b")


@pytest.mark.parametrize("damage", ["gone", "no manifest", "no json", "other json"])
def test_a_damaged_build_is_not_current(built, damage):
    if damage == "gone":
        (built / "page-1.js").unlink()
    elif damage == "no manifest":
        (built / "manifest.json").unlink()
    else:
        (built / "manifest.json").write_text("{}" if damage == "other json" else "{")
    assert not frontend.is_current("a")


def test_the_digest_sees_names_and_contents(tmp_path, monkeypatch):
    monkeypatch.setattr(frontend, "ROOT", tmp_path)
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    one, other = frontend.digest([tmp_path / "a"]), frontend.digest([tmp_path / "b"])
    assert one != other
    (tmp_path / "a").write_text("2")
    assert frontend.digest([tmp_path / "a"]) != one


def test_a_current_build_starts_no_node(built, monkeypatch):
    def refuse() -> None:
        raise AssertionError("Node was asked for")

    monkeypatch.setattr(frontend, "digest", lambda files: "a")
    monkeypatch.setattr(frontend, "install", refuse)
    assert CliRunner().invoke(frontend.main, ["build"], catch_exceptions=False).exit_code == 0


def test_a_failing_command_says_what_it_said(tmp_path, monkeypatch):
    monkeypatch.setattr(frontend, "FRONTEND", tmp_path)
    with pytest.raises(frontend.FrontendError, match="so it goes"):
        frontend._run(["sh", "-c", "echo so it goes >&2; exit 3"], frontend.Node(["/bin/sh"], ["/bin/sh"]))


def test_a_running_site_still_finds_what_it_named(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "manifest.json").write_text(folder.name)
        (folder / "same-1.js").write_text(folder.name)
    (old / "app-1.css").write_text("yesterday's look")
    (old / "app-0.css").write_text("last week's")
    week = time.time() - 7 * 24 * 3600
    os.utime(old / "app-0.css", (week, week))
    frontend._keep_late(old, new)
    assert sorted(p.name for p in new.iterdir()) == ["app-1.css", "manifest.json", "same-1.js"]
    assert (new / "manifest.json").read_text() == (new / "same-1.js").read_text() == "new"
    frontend._keep_late(tmp_path / "nothing", new)
