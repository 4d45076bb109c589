import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.conftest import MakeCourse
from tools.steps import build, tree_files
from tools.steps_build import stub_source
from tools.steps_manifest import ROOT, StepError

SOURCE = '''\
"""Module."""
import functools


def plain(a: int, *, b: str = "x") -> int:
    """The answer is 42."""
    # and this says so again
    return 42


def short(): return 42


class Machine:
    """Holds 42."""

    size: int = 3

    @property
    def value(self) -> int:
        def inner():
            return 42

        return inner()

    @functools.lru_cache
    async def later(self) -> int:
        "42"

    class Part:
        def turn(self):
            if True:
                return """4
2"""


def multi(
    a,
    b,
): return a + 42; print(b)


def nested():
    @functools.cache
    def first():
        return 42

    return first()


after = plain(1)
'''


def test_a_tree_is_the_chapter_and_its_bytecode(tmp_path: Path) -> None:
    build(17, tmp_path / "tree")
    built = {file.relative_to(tmp_path / "tree").as_posix() for file in (tmp_path / "tree").rglob("*.py")}
    assert built == set(tree_files(17))
    assert (tmp_path / "tree/minisgl/core.py").read_bytes() == (ROOT / "minisgl/core.py").read_bytes()
    assert len(list((tmp_path / "tree").rglob("*.pyc"))) == len(built)


def test_python_takes_the_bytecode_without_asking_the_source(tmp_path: Path, make_course: MakeCourse) -> None:
    root = make_course(
        {
            "steps/ch01/chapter.toml": 'number = 1\nnew = ["minisgl/a.py"]\n',
            "minisgl/a.py": "def f():\n    1 / 0\n",
        }
    )
    tree = tmp_path / "tree"
    build(1, tree, root=root)
    (tree / "minisgl/a.py").write_text("raise SystemExit('the source was read')\n")
    done = subprocess.run(
        [sys.executable, "-Bc", "import minisgl.a as a; print(a.f.__code__.co_filename); a.f()"],
        cwd=tree, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(tree / "minisgl/a.py")
    assert "ZeroDivisionError" in done.stderr


def test_a_file_can_be_replaced(tmp_path: Path) -> None:
    build(17, tmp_path / "tree", replace={"minisgl/core.py": "answer = 1\n"})
    assert (tmp_path / "tree/minisgl/core.py").read_text() == "answer = 1\n"


SYMBOLS = ["plain", "short", "Machine", "Machine.Part.turn", "multi", "nested"]


def test_stubs_keep_everything_but_the_answer() -> None:
    stubbed = stub_source(SOURCE, SYMBOLS, "m.py")
    assert "42" not in stubbed
    assert "return" not in stubbed
    for kept in (
        'def plain(a: int, *, b: str = "x") -> int:',
        "    @property",
        "    size: int = 3",
        "    @functools.lru_cache",
        "after = plain(1)",
    ):
        assert kept in stubbed
    assert stubbed.count("raise NotImplementedError") == 7
    # Lines keep their numbers, so that a traceback through the rest points at the right ones.
    assert stubbed.split("\n").index("after = plain(1)") == SOURCE.split("\n").index("after = plain(1)")


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_stubbed_function_says_so_when_it_is_called(symbol: str) -> None:
    namespace: dict[str, object] = {"__name__": "m"}
    source = stub_source(SOURCE.replace("after = plain(1)", ""), [symbol], "m.py")
    exec(compile(source, "m.py", "exec"), namespace)
    calls = {
        "plain": "plain(1)",
        "short": "short()",
        "Machine": "Machine().value",
        "Machine.Part.turn": "Machine.Part().turn()",
        "multi": "multi(1, 2)",
        "nested": "nested()",
    }
    with pytest.raises(NotImplementedError, match="withheld"):
        eval(calls[symbol], namespace)


def test_only_what_is_named_is_stubbed() -> None:
    stubbed = stub_source(SOURCE, ["Machine.value"], "m.py")
    assert stubbed.count("raise NotImplementedError") == 1
    assert "The answer is 42." in stubbed
    assert "Holds 42." in stubbed


def test_the_answer_of_problem_201_is_not_in_its_tree(tmp_path: Path) -> None:
    build(17, tmp_path / "tree", stub=["minisgl/attention/fi.py:FlashInferBackend.prepare_metadata"])
    source = (tmp_path / "tree/minisgl/attention/fi.py").read_text()
    assert "def prepare_metadata(self, batch: Batch) -> None:" in source
    assert "kv_indptr = " not in source
    assert "_initialize_metadata_once" in source
    bytecode = b"".join(file.read_bytes() for file in (tmp_path / "tree/minisgl/attention").rglob("fi.*.pyc"))
    assert b"kv_indptr" not in bytecode.replace(b"paged_kv_indptr", b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"stub": ["minisgl/core.py:Req.nothing"]},
            "minisgl/core.py has no function, method or class 'Req.nothing'",
        ),
        ({"stub": ["minisgl/core.py"]}, "names no symbol: write PATH:NAME"),
        ({"stub": ["minisgl/none.py:f"]}, "has no file minisgl/none.py"),
        ({"replace": {"minisgl/none.py": ""}}, "has no file minisgl/none.py, so it cannot be replaced"),
        ({"replace": {"minisgl/core.py": "a = 1\nb = (\n"}}, "minisgl/core.py, line 2 does not compile"),
        ({"replace": {"minisgl/core.py": "a = '\0'"}}, "minisgl/core.py.* does not compile"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(StepError, match=message):
        build(17, tmp_path / "tree", **arguments)  # type: ignore[arg-type]


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(StepError, match="is not empty"):
        build(17, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
