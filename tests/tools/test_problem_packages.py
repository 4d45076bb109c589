"""The collection of packages: its table, where each can run, and that a broken one takes nothing with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from judge.packages import PROBLEMS, PackageError, find_package, load_packages, survey
from tools.problem_runs import possible_runs
from tools.problem_table import table

PACKAGES = load_packages()


def test_the_table_is_what_the_packages_say() -> None:
    text = (PROBLEMS / "README.md").read_text(encoding="utf-8")
    assert text == table(PACKAGES.values()), "run `python tools/problems.py table`"


@pytest.mark.parametrize("number", PACKAGES)
def test_runs_are_what_the_imports_allow(number: int) -> None:
    assert list(PACKAGES[number].info.runs) == possible_runs(PACKAGES[number])


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """A folder with two packages that may be broken."""
    for number in (200, 202):
        shutil.copytree(PACKAGES[number].folder, tmp_path / PACKAGES[number].folder.name)
    return tmp_path


BREAKS = {
    "no statement": ("statement.zh.md", None, r"statement\.zh\.md: is missing"),
    "wrong TOML": ("problem.toml", b"id = 200\nchapter = = 17\n", r"problem\.toml:2: is no TOML"),
    "unknown field": ("problem.toml", b"id = 200\nspeed = 1\n", r"problem\.toml"),
    "no such chapter": ("problem.toml", b"chapter 33", r"problem\.toml:2: chapter: there is no chapter 33"),
    "not UTF-8": ("solution.py", b"\xff\xfe", r"solution\.py: is not UTF-8"),
    "no JSON": ("public.json", b"[", r"public\.json:1: is no JSON"),
    "no such case": (
        "statement.en.md",
        b"\n{{case none}}\n",
        r"statement\.en\.md:2: there is no public case 'none'",
    ),
    "another's id": ("problem.toml", b"same id", r"id 202 is also that of 202_plan_once|id 202"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_package_is_refused_with_file_and_line_and_takes_nothing_with_it(
    copies: Path, name: str
) -> None:
    file, data, message = BREAKS[name]
    path = next(copies.glob("200_*")) / file
    if data is None:
        path.unlink()
    elif data == b"same id":
        path.write_text(path.read_text().replace("id = 200", "id = 202"))
    elif data == b"chapter 33":
        path.write_text(path.read_text().replace("chapter = 17", "chapter = 33"))
    else:
        path.write_bytes(data)
    found = survey(copies)
    assert len(found.packages) == 1
    assert 202 in found.packages
    assert len(found.refused) == 1
    with pytest.raises(PackageError, match=message):
        raise found.refused[0]
    with pytest.raises(PackageError):
        load_packages(copies)
    assert find_package(202, copies) is not None
    if name != "another's id":
        with pytest.raises(PackageError, match=message):
            find_package(200, copies)
    assert find_package(77, copies) is None
