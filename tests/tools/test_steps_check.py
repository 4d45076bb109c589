"""`check` and `derive` on small courses of their own: a check that cannot fail proves nothing."""

from pathlib import Path

import pytest

from tests.tools.conftest import MakeCourse
from tools.steps_check import Outcome, check, derive, main_output
from tools.steps_manifest import StepError

COURSE = {
    "steps/ch01/chapter.toml": 'number = 1\nnew = ["minisgl/__init__.py", "minisgl/a.py"]\n',
    "steps/ch02/chapter.toml": (
        'number = 2\nnew = ["minisgl/b.py"]\nmain = "examples/two.py"\ntests = ["tests/test_two.py"]\n'
    ),
    "minisgl/__init__.py": "",
    "minisgl/a.py": "VALUE = 1\n",
    "minisgl/b.py": "from minisgl.a import VALUE\n",
    "examples/two.py": "import minisgl.b; print(minisgl.b.VALUE, minisgl.__file__)\n",
    "tests/test_two.py": (
        "import os, minisgl.b\n\ndef test_own_tree():\n"
        "    assert 'course' not in minisgl.__file__ and os.environ['MINISGL_MODEL'] == 'model'\n"
    ),
}


def run_check(root: Path, *numbers: int) -> tuple[bool, dict[str, Outcome]]:
    outcomes: list[Outcome] = []
    passed = check(numbers or None, lambda: Path("model"), outcomes.append, root)
    return passed, {outcome.what: outcome for outcome in outcomes}


def failures(outcomes: dict[str, Outcome]) -> str:
    return "\n".join(f"{what}: {outcome.detail}" for what, outcome in outcomes.items() if not outcome.passed)


def test_a_sound_course_passes_on_its_own_trees(make_course: MakeCourse) -> None:
    root = make_course(COURSE)
    passed, outcomes = run_check(root)
    assert passed, failures(outcomes)
    assert "chapter 1: has no main yet" in outcomes
    assert str(root) not in outcomes["chapter 2: examples/two.py"].detail
    assert "1 passed" in outcomes["chapter 2: tests/test_two.py"].detail


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"minisgl/stray.py": ""}, "stray.py is in no chapter"),
        (
            {"minisgl/a.py": "def f():\n    from minisgl.b import VALUE\n"},
            "a.py:2 imports minisgl.b, which is not in",
        ),
        ({"minisgl/b.py": "from minisgl import c\n"}, "imports c from minisgl, which has neither"),
        ({"minisgl/b.py": "from . import a\n"}, "relative import"),
        ({"minisgl/b.py": "import flashinfer\n"}, "No module named 'flashinfer' (an optional package)"),
        ({"examples/two.py": "raise SystemExit('main is broken')\n"}, "main is broken"),
        ({"examples/two.py": "import tools.steps\n"}, "No module named 'tools'"),
        ({"tests/test_two.py": "def test_it():\n    assert 1 == 2\n"}, "assert 1 == 2"),
    ],
)
def test_faults_are_found(make_course: MakeCourse, changes: dict[str, str], message: str) -> None:
    passed, outcomes = run_check(make_course({**COURSE, **changes}))
    assert not passed
    assert message in failures(outcomes)


def test_what_only_a_type_checker_imports_is_not_missed(make_course: MakeCourse) -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from minisgl.b import VALUE\n"
    root = make_course({**COURSE, "minisgl/a.py": source + "VALUE = 1\n"})
    passed, outcomes = run_check(root, 1)
    assert passed, failures(outcomes)


def test_derive_finds_what_imports_and_mains_need(make_course: MakeCourse) -> None:
    root = make_course(
        {
            **COURSE,
            "steps/ch03/chapter.toml": (
                'number = 3\nnew = ["minisgl/c/e.py", "minisgl/c/__init__.py", "minisgl/d.py"]\n'
            ),
            "minisgl/c/__init__.py": "",
            "minisgl/c/e.py": "",
            "minisgl/d.py": "",
            "minisgl/b.py": "from minisgl.a import VALUE\nfrom minisgl.c import e\n",
            "examples/two.py": "import importlib; importlib.import_module('minisgl.d')\n",
        }
    )
    assert derive(2, lambda: Path("model"), root) == [
        "minisgl/c/__init__.py",
        "minisgl/c/e.py",
        "minisgl/d.py",
    ]
    assert derive(1, lambda: Path("model"), root) == []


def test_derive_reports_a_main_that_fails_for_another_reason(make_course: MakeCourse) -> None:
    root = make_course({**COURSE, "examples/two.py": "1 / 0\n"})
    with pytest.raises(StepError, match="ZeroDivisionError"):
        derive(2, lambda: Path("model"), root)


KEPT = {
    **COURSE,
    "examples/two.py": "import minisgl.b; print('sum', minisgl.b.VALUE, 'took', 0.25, 'ms; off by', 0.0)\n",
}


@pytest.mark.parametrize(
    "kept",
    [
        "sum 1 took 0.25 ms; off by 0.0\n",
        "sum 1 took   17.5 ms; off by 0.0\n\n",
        "sum 1 took 3.1e-07 ms; off by 0.0",
    ],
)
def test_what_is_kept_may_differ_in_times_only(make_course: MakeCourse, kept: str) -> None:
    root = make_course({**KEPT, "steps/ch02/output.txt": kept})
    passed, outcomes = run_check(root, 2)
    assert passed, failures(outcomes)
    assert "chapter 2: examples/two.py prints what is kept" in outcomes


@pytest.mark.parametrize(
    "kept",
    [
        "sum 2 took 0.25 ms; off by 0.0\n",
        "sum 1 took 0.25 ms; off by 0.5\n",
        "",
        "sum 1 took 0.25 ms; off by 0.0\nmore\n",
    ],
)
def test_what_is_kept_and_no_longer_true_is_an_error(make_course: MakeCourse, kept: str) -> None:
    root = make_course({**KEPT, "steps/ch02/output.txt": kept})
    passed, outcomes = run_check(root, 2)
    assert not passed
    assert "python tools/steps.py output 2" in failures(outcomes)


def test_what_a_main_writes_to_stderr_is_not_kept(make_course: MakeCourse) -> None:
    root = make_course(
        {**COURSE, "examples/two.py": "import sys; print('out'); print('log', file=sys.stderr)\n"}
    )
    assert main_output(2, lambda: Path("model"), root) == "out\n"
    with pytest.raises(StepError, match="has no main"):
        main_output(1, lambda: Path("model"), root)
