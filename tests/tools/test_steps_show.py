import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.tools.conftest import MakeCourse
from tools.steps import main
from tools.steps_manifest import ROOT, StepError, tree_files
from tools.steps_show import render_diff, render_tree

COURSE = {
    "steps/ch01/chapter.toml": (
        'number = 1\nnew = ["minisgl/__init__.py", "minisgl/b/z.py", "minisgl/b/a.py"]\n'
    ),
    "steps/ch02/chapter.toml": (
        'number = 2\nnew = ["minisgl/c.py"]\n[early]\n"minisgl/a/x.py" = 4\n'
        '[modified]\n"minisgl/__init__.py" = ["K.f"]\n'
    ),
    "minisgl/__init__.py": "\n\nclass K:\n    @staticmethod\n    def f():\n        pass\n",
    "minisgl/b/z.py": "",
    "minisgl/b/a.py": "",
    "minisgl/c.py": "1\n2\n",
    "minisgl/a/x.py": "",
}


def test_a_tree_as_the_course_prints_it(make_course: MakeCourse) -> None:
    assert render_tree(2, "zh", make_course(COURSE)) == (
        "到这一章为止的文件：5 个（新建 1，修改 1，提前引入 1）\n"
        "\n"
        "minisgl/\n"
        "├── __init__.py  ← 本章修改\n"
        "├── c.py  ← 本章新建\n"
        "├── a/\n"
        "│   ├── x.py  ← 提前引入，第 4 章讲\n"
        "├── b/  （2 个文件，不变）"
    )


def test_and_in_english(make_course: MakeCourse) -> None:
    text = render_tree(2, "en", make_course(COURSE))
    assert text.startswith("Files up to this chapter: 5 (new 1, modified 1, early 1)\n\nminisgl/\n")
    assert "├── b/  (2 files, unchanged)" in text


def test_chapter_17_as_it_stands() -> None:
    text = render_tree(17, "zh")
    assert text.startswith(f"到这一章为止的文件：{len(tree_files(17))} 个（新建 2，修改 0，提前引入 0）\n")
    assert "│   ├── fi.py  ← 本章新建\n│   ├── fa.py  ← 本章新建\n" in text
    shown = len(re.findall(r"\.py", text)) + sum(int(count) for count in re.findall(r"（(\d+) 个文件", text))
    assert shown == len(tree_files(17))


def test_a_diff_names_files_and_symbols(make_course: MakeCourse) -> None:
    root = make_course(COURSE)
    assert render_diff(2, "en", root).split("\n") == [
        "+ minisgl/c.py  new, 2 lines",
        "+ minisgl/a/x.py  early → Chapter 4, 0 lines",
        "~ minisgl/__init__.py  modified",
        "    K.f  minisgl/__init__.py:4-6",
    ]
    toml = root / "steps/ch02/chapter.toml"
    toml.write_text(toml.read_text().replace("K.f", "K.g"))
    with pytest.raises(StepError, match=r"__init__\.py has no K\.g"):
        render_diff(2, "en", root)


def test_commands(tmp_path: Path) -> None:
    runner = CliRunner()
    assert "17  GPU" in runner.invoke(main, ["list"]).output
    assert "modified 0" in runner.invoke(main, ["tree", "17", "--lang", "en"]).output
    mine = tmp_path / "mine.py"
    mine.write_text("mine = 1\n")
    result = runner.invoke(
        main,
        ["build", "17", str(tmp_path / "t"), "--with", f"minisgl/benchmark/client.py={mine}"],
    )
    assert isinstance(result.exception, StepError)
    result = runner.invoke(
        main,
        [
            "build",
            "17",
            str(tmp_path / "t"),
            "--with",
            f"minisgl/core.py={mine}",
            "--stub",
            "minisgl/utils/misc.py:div_ceil",
        ],
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "t/minisgl/core.py").read_text() == "mine = 1\n"
    assert "withheld" in (tmp_path / "t/minisgl/utils/misc.py").read_text()


def test_mistakes_are_sentences_and_no_torch_is_needed() -> None:
    code = "import sys, runpy; sys.modules['torch'] = None; sys.argv = ['steps.py', 'tree', '99']; "
    code += f"runpy.run_path({str(ROOT / 'tools/steps.py')!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert re.fullmatch(r"steps: there is no chapter 99; chapters: [\d, ]+\n", done.stderr)
