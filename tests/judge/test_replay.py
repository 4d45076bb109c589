"""A stored submission gives the same verdict again, from its problem's version and its seed."""

import shutil
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from judge import replay
from judge.archive import Archive
from judge.judge import Judge
from judge.packages import PackageError, load_package
from judge.store import Queue, Store, StoreSettings


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))
    return StoreSettings()


def stored(settings, judge, package, source):
    """A submission with the verdict that the judge gives it now."""
    Archive(settings.packages).keep(package)
    store = Store(settings.url)
    store.migrate()
    queue = Queue(store)
    number = queue.submit(user="local", problem=package.id, version=package.version, source=source.encode())
    claim = queue.claim("test")
    verdict = judge.judge(package, claim.source, claim.seed).to_json()
    assert queue.finish(claim, verdict)
    store.close()
    return number


@pytest.fixture(scope="module")
def another():
    """The judge that replays: not the one that judged, and the same for all, as starting one takes ten seconds."""
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize("name", ["", "last_page_len_modulo", "rows_by_enumeration"])
def test_a_replay_is_the_same_case_by_case(settings, judge, another, packages, monkeypatch, name):
    monkeypatch.setattr(replay, "Judge", lambda: nullcontext(another))
    package = packages[200]
    number = stored(settings, judge, package, package.wrong[name].source if name else package.solution)
    done = CliRunner().invoke(replay.main, [str(number)])
    assert done.exit_code == 0, done.output
    assert "the same verdict, case by case" in done.output


def test_a_replay_says_what_is_different(judge, packages):
    package = packages[200]
    one, two = (
        judge.judge(package, package.wrong[n].source.encode(), bytes(16)).to_json()
        for n in ("int64", "floor_pages")
    )
    assert "cases" in replay.differences(one, two)
    assert replay.differences(one, one) == []


def test_an_unknown_submission_cannot_be_replayed(settings):
    store = Store(settings.url)
    store.migrate()
    store.close()
    assert CliRunner().invoke(replay.main, ["7"]).exit_code == 2


def test_the_archive_keeps_a_version_while_its_folder_goes_on(tmp_path, packages):
    folder = tmp_path / "problem"
    shutil.copytree(packages[200].folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    first = load_package(folder)
    archive = Archive(tmp_path / "kept")
    archive.keep(first)
    archive.keep(first)
    (folder / "solution.py").write_text("changed\n")
    assert archive.load(first.version).solution == first.solution
    with pytest.raises(PackageError, match="was not kept"):
        archive.load("0" * 16)
    (tmp_path / "kept" / first.version / "solution.py").write_text("tampered\n")
    with pytest.raises(PackageError, match="were changed"):
        archive.load(first.version)
