from pathlib import Path

import pytest

from tests.tools.conftest import MakeCourse
from tools.steps_build import build
from tools.steps_manifest import (
    ROOT,
    StepError,
    load_chapters,
    manifest_faults,
    tree_files,
    tree_sources,
)

ONE = {"steps/ch01/chapter.toml": 'number = 1\nnew = ["minisgl/a.py"]\n', "minisgl/a.py": ""}
TWO = {
    **ONE,
    "steps/ch02/chapter.toml": 'number = 2\nnew = ["minisgl/b.py"]\n[early]\n"minisgl/c/d.py" = 3\n',
    "steps/ch03/chapter.toml": 'number = 3\nnew = ["minisgl/c/d.py"]\n[modified]\n"minisgl/a.py" = ["f"]\n',
    "minisgl/b.py": "",
    "minisgl/c/d.py": "def f(): pass",
}


def test_the_checkout_is_consistent() -> None:
    assert manifest_faults() == []


def test_the_last_tree_holds_every_file_of_the_engine() -> None:
    on_disk = {file.relative_to(ROOT).as_posix() for file in (ROOT / "minisgl").rglob("*.py")}
    assert set(tree_files(max(load_chapters()))) == on_disk


def test_chapter_17_adds_the_two_gpu_backends() -> None:
    chapter = load_chapters()[17]
    assert chapter.new == ("minisgl/attention/fi.py", "minisgl/attention/fa.py")
    assert (chapter.early, chapter.modified) == ({}, {})
    assert {200, 201} <= set(chapter.problems)


def test_a_tree_is_what_chapters_so_far_bring(make_course: MakeCourse) -> None:
    root = make_course(TWO)
    assert tree_files(1, root) == ["minisgl/a.py"]
    assert tree_files(2, root) == ["minisgl/a.py", "minisgl/b.py", "minisgl/c/d.py"]
    assert tree_files(3, root) == tree_files(2, root)
    assert manifest_faults(root) == []


def test_unknown_chapters_are_answered_with_those_there_are(make_course: MakeCourse) -> None:
    with pytest.raises(StepError, match=r"no chapter 9; chapters: 1, 2, 3"):
        tree_files(9, make_course(TWO))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"steps/ch01/chapter.toml": "number = 2\n"},
            "ch01/chapter.toml: number is 2, but the folder says 1",
        ),
        ({"steps/ch01/chapter.toml": "number = 1\nnwe = []\n"}, "unknown key 'nwe'"),
        ({"steps/ch01/chapter.toml": "number = \n"}, "ch01/chapter.toml cannot be read"),
        (
            {"steps/ch01/chapter.toml": 'number = 1\nnew = ["../a.py"]\n'},
            "'../a.py' is not a file of the engine",
        ),
        (
            {"steps/ch02/chapter.toml": 'number = 2\nnew = ["minisgl/a.py"]\n'},
            "a.py is new in chapter 1 already",
        ),
        (
            {"steps/ch02/chapter.toml": 'number = 2\n[early]\n"minisgl/a.py" = 3\n'},
            "a.py is early, but chapter 1 brought it in already",
        ),
        (
            {"steps/ch02/chapter.toml": 'number = 2\n[early]\n"minisgl/c/d.py" = 2\n'},
            "the chapter that explains it must be a later one",
        ),
        (
            {"steps/ch02/chapter.toml": 'number = 2\n[early]\n"minisgl/b.py" = 3\n'},
            "b.py is early for chapter 3, which does not list it as new",
        ),
        (
            {"steps/ch02/chapter.toml": 'number = 2\n[modified]\n"minisgl/c/d.py" = ["f"]\n'},
            "d.py is modified, but no earlier chapter brought it in",
        ),
        (
            {"steps/ch02/chapter.toml": 'number = 2\n[sections]\nx = { zh = "甲" }\n'},
            "should be a table with the keys zh and en",
        ),
    ],
)
def test_contradictions_are_refused(make_course: MakeCourse, changes: dict[str, str], message: str) -> None:
    with pytest.raises(StepError, match=message.replace("(", r"\(")):
        load_chapters(make_course({**TWO, **changes}))


def remove(root: Path, name: str) -> None:
    (root / name).unlink()


def test_files_and_chapters_must_agree(make_course: MakeCourse) -> None:
    root = make_course(
        {
            **TWO,
            "minisgl/stray.py": "",
            "steps/ch03/text.en.md": "# Title\n\n## Known {#known}\n\n## Other {#other}\n",
            "steps/ch03/chapter.toml": (
                'number = 3\nnew = ["minisgl/c/d.py"]\nmain = "examples/none.py"\ntests = ["tests/none.py"]\n'
                '[sections]\nknown = { zh = "甲", en = "A" }\nlost = { zh = "乙", en = "B" }\n'
            ),
        }
    )
    remove(root, "minisgl/b.py")
    faults = "\n".join(manifest_faults(root))
    for expected in (
        "minisgl/stray.py is in no chapter",
        "ch02/chapter.toml lists minisgl/b.py, but there is no such file",
        "lists examples/none.py under main",
        "lists tests/none.py under tests",
        "has the section 'lost'",
        "has the anchor {#other}",
    ):
        assert expected in faults
    assert "known" not in faults


SOURCES = {
    **ONE,
    "steps/ch02/chapter.toml": 'number = 2\nnew = ["minisgl/b.py"]\nsources = ["minisgl/csrc/b.cu"]\n',
    "minisgl/b.py": "",
    "minisgl/csrc/b.cu": "// copies\n",
}


def test_sources_go_along_and_are_not_counted(make_course: MakeCourse, tmp_path: Path) -> None:
    root = make_course(SOURCES)
    assert manifest_faults(root) == []
    assert tree_files(2, root) == ["minisgl/a.py", "minisgl/b.py"]
    assert (tree_sources(1, root), tree_sources(2, root)) == ([], ["minisgl/csrc/b.cu"])
    build(2, tmp_path / "tree", root=root)
    assert (tmp_path / "tree" / "minisgl" / "csrc" / "b.cu").read_text() == "// copies\n"


def test_sources_and_chapters_must_agree(make_course: MakeCourse) -> None:
    root = make_course({**SOURCES, "minisgl/csrc/c.h": ""})
    assert manifest_faults(root) == [
        "minisgl/csrc/c.h is in no chapter: add it to `sources` of the chapter that explains it"
    ]
    (root / "minisgl/csrc/b.cu").unlink()
    assert "lists minisgl/csrc/b.cu, but there is no such file" in manifest_faults(root)[0]
    strange = make_course({**ONE, "steps/ch01/chapter.toml": 'number = 1\nsources = ["minisgl/a.py"]\n'})
    with pytest.raises(StepError, match=r"'minisgl/a\.py' is not a file of the engine such as .*ops\.cpp"):
        load_chapters(strange)
