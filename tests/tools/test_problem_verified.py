"""What `problems verify` found is kept: beside what was found before, for the site's own packages, whatever came out."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from judge import verified
from judge.packages import find_package
from tools import problem_checks, problems

FOUND = verified.Found(version="a" * 16, seeds=3, complaints=[], at=1.0)


def test_what_was_found_of_others_stays(tmp_path):
    folder = tmp_path / "made" / "on the way"
    verified.write(folder, [(40, FOUND), (41, FOUND)])
    newer = FOUND.model_copy(update={"complaints": ["no"], "at": 2.0})
    verified.write(folder, [(41, newer)])
    assert verified.read(folder) == {40: FOUND, 41: newer}
    assert [f.name for f in folder.iterdir()] == [verified.NAME], "nothing else is left there"


def test_nothing_was_found_where_nobody_looked(tmp_path):
    assert verified.read(tmp_path) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"40": {"version": 1}}', '{"forty": null}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / verified.NAME).write_text(text)
    for use in (lambda: verified.read(tmp_path), lambda: verified.write(tmp_path, [(40, FOUND)])):
        with pytest.raises(ValueError, match=r"verified\.json is damaged.*delete it"):
            use()


@pytest.mark.parametrize("complaints", [[], ["the reference fails"]])
def test_the_command_keeps_its_result(tmp_path, monkeypatch, complaints):
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(
        problem_checks, "verify", lambda judge, package, seeds: problem_checks.Report(package, complaints)
    )
    package = find_package(40)
    elsewhere = shutil.copytree(package.folder, tmp_path / package.folder.name)
    for which, kept in ((str(elsewhere), {}), ("40", {40: (package.version, 2, complaints)})):
        done = CliRunner().invoke(problems.main, ["verify", which, "--seeds", "2", "--jobs", "1"])
        assert done.exit_code == bool(complaints), done.output
        found = verified.read(tmp_path / "data")
        assert {n: (f.version, f.seeds, f.complaints) for n, f in found.items()} == kept


def test_a_result_that_cannot_be_kept_is_a_result(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(
        problem_checks, "verify", lambda judge, package, seeds: problem_checks.Report(package)
    )
    done = CliRunner().invoke(problems.main, ["verify", "40"])
    assert done.exit_code == 0
    assert "was not kept" in done.output
