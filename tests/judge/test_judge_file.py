"""Problems of kind `file`: the submission stands in for a file of the tree, whoever imports it."""

from __future__ import annotations

import pytest
from small_packages import write_package

from judge.core.status import Status
from judge.judge import Judge
from judge.packages import ROOT
from tools.problem_attacks import attacks

SEED = bytes(range(16))
TARGET = "minisgl/utils/misc.py"
DRIVER = """
def run(submission, inputs):
    from minisgl.utils.misc import div_ceil
    from minisgl.utils import misc

    return {"pages": div_ceil(inputs["n"], 4), "same": misc is submission}
"""
CASES = """
def fixed():
    return {"nine": {"n": 9}, "eight": {"n": 8}}


def teach():
    return {"one": {"n": 1}}


def generate(rng):
    return {"n": rng.integer(1, 60)}
"""
FLOORED = """

def div_ceil(a, b):
    return a // b
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    solution = (ROOT / TARGET).read_text(encoding="utf-8")
    files = {
        "driver.py": DRIVER,
        "cases.py": CASES,
        "solution.py": solution,
        "wrong/floored.py": solution + FLOORED,
        "wrong/wrong.toml": '[floored]\nsection = "ch02#x"\ndiagnosis = { zh = "向下取整", en = "rounded down" }\n',
    }
    return write_package(
        tmp_path_factory.mktemp("file"),
        files=files,
        kind="file",
        entry="div_ceil",
        signature="div_ceil(a, b)",
        more=f'target = "{TARGET}"\nneeds = ["tree"]',
    )


def test_every_importer_gets_the_submission(judge, package):
    verdict = judge.judge(package, package.solution.encode(), SEED)
    assert verdict.status is Status.ACCEPTED
    verdict = judge.judge(package, (package.solution + FLOORED).encode(), SEED)
    assert verdict.status is Status.WRONG_ANSWER
    assert [e["names"] for e in verdict.diagnosis] == [["floored"]]


def test_the_file_itself_is_not_in_the_sandbox(judge, package):
    for name, program in attacks(package):
        if name != "first_input":  # an answer like any other, and a right one of the smallest cases
            assert judge.judge(package, program.encode(), SEED).status is not Status.ACCEPTED, name


def test_a_traceback_shows_the_submissions_line(judge, package):
    program = "def div_ceil(a, b):\n    return a / 0\n" + "".join(
        f"\n\ndef {name}(*args):\n    return None\n" for name in ("align_down", "align_up", "call_if_main")
    )
    verdict = judge.judge(package, program.encode(), SEED, which="public")
    assert verdict.status is Status.RUNTIME_ERROR
    assert verdict.cases[0].message.params["line"] == 2


def test_a_process_that_runs_one_program_after_another_imports_each_anew(package):
    """Tier `local` keeps one process for all references and known mistakes."""
    with Judge(children=1, tiers=("local",)) as judge:
        assert judge.judge(package, package.solution.encode(), SEED).status is Status.ACCEPTED
        verdict = judge.judge(package, (package.solution + FLOORED).encode(), SEED)
        assert [e["names"] for e in verdict.diagnosis] == [["floored"]]
