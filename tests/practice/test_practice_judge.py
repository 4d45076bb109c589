"""The terminal command, called as a learner calls it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "judge" / "verdict.schema.json").read_text())
PROBLEM_200 = ROOT / "problems" / "200_flashinfer_metadata"
PROBLEM_201 = ROOT / "problems" / "201_fi_prepare_metadata"
WRONG = [p for folder in (PROBLEM_200, PROBLEM_201) for p in sorted((folder / "wrong").glob("*.py"))]


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Call practice/judge.py in a folder of its own; the local judge lives in a runtime folder of its own too."""
    runtime = tmp_path_factory.mktemp("run")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8", "COLUMNS": "200"}

    def call(*args, lang=None, cwd=ROOT):
        env = {**environment, "LC_ALL": f"{lang}.UTF-8"} if lang else environment
        return subprocess.run(
            [sys.executable, str(ROOT / "practice" / "judge.py"), *map(str, args)],
            capture_output=True,
            text=True,
            env=env,
            cwd=cwd,
            timeout=120,
        )

    call.environment = environment
    yield call
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if b"judge.local" in line and str(runtime).encode() in line:
            os.kill(int(process.name), 15)


@pytest.mark.parametrize("folder", [PROBLEM_200, PROBLEM_201], ids=["200", "201"])
def test_the_reference_is_accepted(command, folder):
    done = command("test", folder.name[:3], folder / "solution.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accepted" in done.stdout
    assert "20 of 20" in done.stdout
    assert "strong" in done.stdout


@pytest.mark.parametrize("path", WRONG, ids=lambda p: f"{p.parents[1].name[:3]}-{p.stem}")
def test_each_wrong_solution_is_told_its_own_diagnosis(command, path):
    done = command(path.parents[1].name[:3], path, "--json")
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)
    jsonschema.validate(verdict, SCHEMA)
    assert [e["names"] for e in verdict["diagnosis"]] == [[path.stem]]


def test_a_person_reads_the_diagnosis_and_a_counterexample(command):
    done = command("test", 200, PROBLEM_200 / "wrong" / "last_page_len_modulo.py")
    assert done.returncode == 1
    for part in (
        "wrong answer",
        "seq_len % page_size",
        "smallest counterexample",
        "yours int32 [0]",
        "last-page-len",
        "--seed",
    ):
        assert part in done.stdout
    chinese = command("test", 200, PROBLEM_200 / "wrong" / "last_page_len_modulo.py", lang="zh_CN")
    for part in ("答案错误", "最小的反例", "最后一页从不为空"):
        assert part in chinese.stdout


def test_a_seed_draws_the_same_cases_again(command):
    path = PROBLEM_200 / "wrong" / "last_page_len_modulo.py"
    one, two, other = (json.loads(command(200, path, "--json", "--seed", seed).stdout) for seed in (7, 7, 8))
    strip = lambda v: [(c["name"], c["status"]) for c in v["cases"]]  # noqa: E731
    assert strip(one) == strip(two)
    assert one["total"] == other["total"]


def test_run_judges_public_cases_only(command):
    verdict = json.loads(command(200, PROBLEM_200 / "solution.py", "--run", "--json").stdout)
    assert {c["group"] for c in verdict["cases"]} == {"public"}
    assert verdict["total"] == 4


def test_case_shows_inputs_and_both_outputs(command):
    done = command(200, PROBLEM_200 / "wrong" / "int64.py", "--case", "two_requests")
    assert done.returncode == 1
    for part in ("page_table", "expected int32 [0, 2, 4]", "yours int64 [0, 2, 4]"):
        assert part in done.stdout


def test_a_syntax_error_shows_line_and_caret(command, tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("import torch\n\ndef flashinfer_metadata(reqs, page_table, page_size:\n    pass\n")
    done = command(200, file)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if "Syntax error in line 3" in line)
    assert lines[at + 2].index("^") == lines[at + 1].index("(")


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ((999,), "there is no problem 999"),
        ((200, "nowhere.py"), "nowhere.py is not there"),
        ((200, PROBLEM_200 / "solution.py", "--case", "x"), "two_requests"),
        ((200, PROBLEM_200 / "solution.py", "--seed", "-1"), "--seed"),
        ((200, PROBLEM_200 / "solution.py", "--kernels", "real"), "NVIDIA GPU"),
        (("test", "tests"), "no problem.toml"),
        (("nothing",), "No such command"),
    ],
)
def test_wrong_usage_says_what_to_do(command, args, part):
    done = command(*args)
    assert done.returncode == 2
    assert part in done.stderr


def test_a_broken_package_is_the_authors_error(command, tmp_path):
    folder = tmp_path / "200_broken"
    folder.mkdir()
    for path in PROBLEM_200.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            target = folder / path.relative_to(PROBLEM_200)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    (folder / "cases.py").write_text("def public():\n    return {}\n\nraise ValueError('broken here')\n")
    done = command("test", folder, PROBLEM_200 / "solution.py")
    assert done.returncode == 3
    assert "cases.py:4" in done.stderr
    assert "broken here" in done.stderr


def test_list_start_and_solution(command, tmp_path):
    assert "200" in command("list").stdout
    listed = json.loads(command("list", "--json").stdout)
    assert {200, 201} <= {p["id"] for p in listed}
    assert command("solution", 200).stdout == (PROBLEM_200 / "solution.py").read_text()


def test_start_writes_the_starter_once(command):
    path = ROOT / "practice" / "workspace" / "201.py"
    kept = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    try:
        first = command("start", 201)
        assert first.returncode == 0
        assert path.read_bytes() == (PROBLEM_201 / "starter.py").read_bytes()
        assert "FIMetadata" in first.stdout
        path.write_text("mine")
        assert "left alone" in command("start", 201).stdout
        assert path.read_text() == "mine"
    finally:
        path.unlink()
        if kept is not None:
            path.write_bytes(kept)


def test_hints_one_by_one_and_wrong_usage_in_both_languages(command):
    statement = command("start", 200, lang="zh_CN").stdout
    assert "提示 3：最后一页" in statement
    assert "前 `n - 1` 页都是满的" not in statement
    assert "都是满的" in command("hint", 200, 3, lang="zh_CN").stdout
    for lang, said in (("zh_CN", "没有第 9 条提示"), ("en_US", "has no hint 9")):
        done = command("hint", 200, 9, lang=lang)
        assert done.returncode == 2
        assert said in done.stderr
    for lang, said in (("zh_CN", "没有题目 399"), ("en_US", "no problem 399")):
        done = command("test", 399, lang=lang)
        assert done.returncode == 2
        assert said in done.stderr


def test_doctor_says_what_is_here(command):
    done = command("doctor")
    assert done.returncode == 0, done.stdout
    for part in ("Python", "torch", "strong", "GPU"):
        assert part in done.stdout


def test_watch_judges_again_when_the_file_is_saved(command, tmp_path):
    file, log = tmp_path / "mine.py", tmp_path / "log"
    file.write_text((PROBLEM_200 / "starter.py").read_text())
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "practice" / "judge.py"), "200", str(file), "--watch", "--run"],
            stdout=out,
            env=command.environment,
        )
    try:
        wait_for(log, "runtime error")
        new = tmp_path / "saved.py"
        new.write_text((PROBLEM_200 / "solution.py").read_text())
        os.replace(new, file)
        wait_for(log, "accepted")
    finally:
        process.terminate()
        process.wait(10)


def wait_for(log, part, deadline_s=60):
    end = time.monotonic() + deadline_s
    while part not in log.read_text():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)


@pytest.mark.skipif(
    not (ROOT / ".venv" / "bin" / "python").exists(), reason="needs the environment of `make setup`"
)
def test_any_python_finds_the_environment_of_the_course():
    """Also the interpreter that the environment was made with, which its `python` is a link to."""
    bare = Path(sys.executable).resolve()
    done = subprocess.run(
        [bare, "-I", ROOT / "practice" / "judge.py", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "start" in done.stdout
