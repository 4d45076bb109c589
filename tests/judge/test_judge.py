"""Submissions on their way through the whole judge: zygotes, sandbox, checker, diagnosis."""

import json
import os
import runpy
import threading
from pathlib import Path

import jsonschema
import pytest

from judge.core.status import Status
from judge.core.values import from_display
from judge.core.wording import say, say_diagnosis
from judge.judge import Judge
from judge.packages import survey
from judge.prepared import KEEP_STAGES_MB
from tools.problem_attacks import attacks

SEED = bytes(range(16))
SCHEMA = json.loads((Path(__file__).parents[2] / "judge" / "verdict.schema.json").read_text())
# All of them is what `tools/problems.py verify` is for; here two of different kinds stand for the rest.
PACKAGES = {number: package for number, package in survey().packages.items() if number in (200, 201)}
WRONG = [(p.id, name) for p in PACKAGES.values() for name in p.wrong]
ATTACKS = [(p.id, name) for p in PACKAGES.values() for name, _ in attacks(p)]

HEAD_200 = "import torch\n\ndef flashinfer_metadata(reqs, page_table, page_size):\n"


def run(judge, package, source, **options):
    source = source if isinstance(source, bytes) else source.encode()
    verdict = judge.judge(package, source, options.pop("seed", SEED), **options)
    jsonschema.validate(verdict.to_json(), SCHEMA)
    return verdict


@pytest.mark.parametrize("number", PACKAGES)
def test_the_reference_is_accepted(judge, number):
    verdict = run(judge, PACKAGES[number], PACKAGES[number].solution)
    assert verdict.status is Status.ACCEPTED
    assert verdict.passed == verdict.total == len(PACKAGES[number].public) + 16
    assert verdict.diagnosis == []
    assert verdict.counterexample is None


@pytest.mark.parametrize(("number", "name"), WRONG)
def test_every_wrong_solution_is_named(judge, number, name):
    package = PACKAGES[number]
    verdict = run(judge, package, package.wrong[name].source)
    assert verdict.status is Status.WRONG_ANSWER
    assert [(e["kind"], e["names"]) for e in verdict.diagnosis] == [("mistake", [name])]
    for lang in ("zh", "en"):
        assert package.wrong[name].diagnosis[lang] in say_diagnosis(verdict.diagnosis[0], lang)
    example = verdict.counterexample
    assert example is not None
    assert example["got"] != example["expected"]


@pytest.mark.parametrize(("number", "name"), ATTACKS)
def test_answers_are_not_in_the_sandbox(judge, number, name):
    source = dict(attacks(PACKAGES[number]))[name]
    assert run(judge, PACKAGES[number], source).status is not Status.ACCEPTED


def test_another_right_way_is_accepted(judge, packages):
    source = packages[201].solution.replace("if max(query_lens) == 1:", "if batch.is_decode:")
    assert run(judge, packages[201], source).status is Status.ACCEPTED


def test_a_program_that_sets_a_number_of_threads_goes_on_with_one(judge, packages):
    head = "import torch\ntorch.set_num_threads(8)\ntorch.set_num_interop_threads(2)\n"
    verdict = run(judge, packages[200], head + packages[200].solution)
    assert verdict.status is Status.ACCEPTED


def test_two_mistakes_are_both_named(judge, packages):
    source = (
        packages[200]
        .solution.replace("seq_len - (num_pages - 1) * page_size", "seq_len % page_size")
        .replace("qo_lens.append(extend_len)", "qo_lens.append(seq_len)")
    )
    verdict = run(judge, packages[200], source)
    named = sorted(n for e in verdict.diagnosis for n in e["names"])
    assert named == ["last_page_len_modulo", "qo_indptr_from_seq_len"]


def test_an_unknown_mistake_gets_invariants_not_a_name(judge, packages):
    source = packages[200].solution.replace("[0, *lengths]", "[1, *lengths]")
    verdict = run(judge, packages[200], source)
    assert {e["kind"] for e in verdict.diagnosis} == {"invariant"}
    assert any("begin with 0" in say_diagnosis(e, "en") for e in verdict.diagnosis)


def test_what_failing_cases_share_is_said(judge, packages):
    source = packages[200].solution.replace(
        "torch.tensor(last_page_lens, dtype=torch.int32)",
        "torch.tensor(last_page_lens if len(reqs) == 1 else last_page_lens[::-1], dtype=torch.int32) * 0 + 1"
        " if page_size > 1 else torch.tensor(last_page_lens, dtype=torch.int32)",
    )
    verdict = run(judge, packages[200], source)
    assert verdict.status is Status.WRONG_ANSWER
    assert not any(e["kind"] == "mistake" for e in verdict.diagnosis)


def test_what_failing_cases_share_fits_the_small_case_beside_it(judge):
    package = survey().packages[30]
    features = runpy.run_path(str(package.folder / "cases.py"))["features"]
    source = f"def {package.entry}(*args, **kwargs):\n    return []\n"
    verdict = run(judge, package, source, which="public")
    held = features({k: from_display(v) for k, v in verdict.counterexample["inputs"].items()})
    said = [e["text"]["en"] for e in verdict.diagnosis if e["kind"] == "common"]
    assert not held["several"]
    assert "more than one token is generated" not in said


@pytest.mark.parametrize(
    ("number", "body"),
    [
        (200, "return None"),
        (200, "return None, None, None, None"),
        (200, "return [0], [0], [0], [0]"),
        (200, "return {'qo_indptr': 1}"),
        (201, "pass"),
    ],
)
def test_what_is_no_tensor_agrees_with_no_mistake(judge, packages, number, body):
    source = f"def {packages[number].entry}({', '.join(packages[number].parameters)}):\n    {body}\n"
    verdict = run(judge, packages[number], source)
    assert verdict.status is Status.WRONG_ANSWER
    assert not [e for e in verdict.diagnosis if e["kind"] in ("mistake", "tie", "partial")]


@pytest.mark.parametrize("key", ["(1, 2)", "1", "'LEAK' + str(i['reqs'])", "None"])
def test_outputs_of_a_driver_that_was_replaced_tell_nothing_and_break_nothing(judge, packages, key):
    source = packages[201].wrong["cumsum_int64"].source + (
        "\n\nimport driver\n_run = driver.run\n"
        f"driver.run = lambda s, i: {{**_run(s, i), {key}: 1, 'more': 2}}\n"
    )
    verdict = run(judge, packages[201], source)
    assert verdict.status in (Status.WRONG_ANSWER, Status.RUNTIME_ERROR)
    data = verdict.to_json()
    hidden = [c for c in data["cases"] if c["group"] == "hidden"]
    assert "LEAK" not in json.dumps([hidden, data["diagnosis"]])
    assert run(judge, packages[201], packages[201].solution).status is Status.ACCEPTED


def test_the_same_seed_gives_the_same_cases(judge, packages):
    source = packages[200].wrong["last_page_len_modulo"].source
    first, second = (run(judge, packages[200], source) for _ in range(2))
    assert [(c.name, c.status) for c in first.cases] == [(c.name, c.status) for c in second.cases]
    counts = {run(judge, packages[200], source, seed=os.urandom(16)).passed for _ in range(6)}
    assert len(counts) > 1


def test_public_only_runs_the_public_cases(judge, packages):
    verdict = run(judge, packages[200], packages[200].solution, which="public")
    assert sorted(c.name for c in verdict.cases) == sorted(c.name for c in packages[200].public)


def test_events_come_in_order(judge, packages):
    events = []
    verdict = run(judge, packages[200], packages[200].solution, on_event=events.append)
    assert [e["type"] for e in events] == ["start", *["case"] * verdict.total, "verdict"]
    assert [e["done"] for e in events[1:-1]] == list(range(1, verdict.total + 1))
    assert events[-1]["verdict"] == verdict.to_json()


BAD = {
    "empty": (b"", "source_empty", {}),
    "nul": (b"x = '\0'", "source_nul", {"line": 1}),
    "gbk": ("# 中文".encode("gbk"), "source_not_utf8", {"line": 1}),
    "a megabyte": (b"# " + b"x" * 1_000_000, "source_too_large", {}),
    "syntax": (b"import torch\n\ndef f(:\n    pass\n", "syntax_error", {"line": 3, "column": 7}),
    "tabs and spaces": (b"def f():\n\tif 1:\n        pass\n", "syntax_error", {"line": 3}),
    "brackets": (b"x = " + b"[" * 10_000 + b"]" * 10_000, "syntax_error", {}),
    "minus signs": (b"x = " + b"-" * 60_000 + b"1", "syntax_error", {}),
    "missing function": (b"def another():\n    pass\n", "missing_entry", {"entry": "flashinfer_metadata"}),
    "not a function": (b"flashinfer_metadata = 3\n", "entry_not_callable", {"type": "int"}),
    "too few parameters": (
        b"def flashinfer_metadata(reqs):\n    pass\n",
        "wrong_signature",
        {"got": "(reqs)"},
    ),
    "too many parameters": (b"def flashinfer_metadata(a, b, c, d):\n    pass\n", "wrong_signature", {}),
    "keyword only": (b"def flashinfer_metadata(*, a, b, c):\n    pass\n", "wrong_signature", {}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_a_clear_message(judge, packages, name):
    raw, code, params = BAD[name]
    verdict = run(judge, packages[200], raw)
    if name == "minus signs" and verdict.message.code != "syntax_error":
        # This one may exhaust the compiler's stack: also the submission's error, and a message of its own.
        assert verdict.status is Status.RUNTIME_ERROR
        return
    assert verdict.status is Status.COMPILE_ERROR
    assert verdict.message.code == code
    assert params.items() <= verdict.message.params.items()
    assert {c.status for c in verdict.cases} == {Status.NOT_RUN}
    assert verdict.total == 20
    for lang in ("zh", "en"):
        assert say(verdict.message, lang)


@pytest.mark.parametrize(
    "change",
    [lambda s: b"\xef\xbb\xbf" + s, lambda s: s.replace(b"\n", b"\r\n"), lambda s: s.replace(b"    ", b"\t")],
)
def test_what_editors_do_is_accepted(judge, packages, change):
    assert run(judge, packages[200], change(packages[200].solution.encode())).status is Status.ACCEPTED


ENDINGS = {
    "endless": ("while True: pass", Status.TIME_LIMIT, "cpu_limit"),
    "in c": ("sum(range(10**12))", Status.TIME_LIMIT, "cpu_limit"),
    "memory": ("x = bytearray(1 << 30)", Status.MEMORY_LIMIT, "memory_limit"),
    "tensor": ("x = torch.zeros(1 << 28)", Status.MEMORY_LIMIT, "memory_limit"),
    "output": ("while True: print('x' * 1000)", Status.OUTPUT_LIMIT, "output_limit"),
    "exit": ("import os; os._exit(0)", Status.RUNTIME_ERROR, "ended_early"),
    "segfault": ("import ctypes; ctypes.string_at(0)", Status.RUNTIME_ERROR, "killed_by_signal"),
    "fork": ("import os; os.fork()", Status.RUNTIME_ERROR, "exception"),
    "thread": ("import threading; threading.Thread(target=print).start()", Status.RUNTIME_ERROR, "exception"),
    "network": (
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        Status.RUNTIME_ERROR,
        "exception",
    ),
    "file": ("open('/etc/passwd').read()", Status.RUNTIME_ERROR, "exception"),
    "sys.exit": ("import sys; sys.exit(0)", Status.RUNTIME_ERROR, "exception"),
    "object": ("return object()", Status.RUNTIME_ERROR, "unsupported_type"),
    "huge reply": ("return torch.zeros(1 << 21)", Status.RUNTIME_ERROR, "reply_too_large"),
    "forged bytes": ("import os; os.write(4, b'\\x08\\0\\0\\0\\0\\0\\0\\0{}{}')", Status.RUNTIME_ERROR, None),
    "closed pipe": ("import os; os.close(4); return None", Status.RUNTIME_ERROR, None),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_killed_or_failing_run_says_why_and_hurts_nobody(judge, packages, name):
    line, status, code = ENDINGS[name]
    verdict = run(judge, packages[200], HEAD_200 + f"    {line}\n")
    assert verdict.status is status
    assert verdict.passed == 0
    assert verdict.total == 20
    said = [m for m in (verdict.message, *(c.message for c in verdict.cases)) if m is not None]
    assert said
    if code is not None:
        assert code in {m.code for m in said}
    for message in said:
        for lang in ("zh", "en"):
            assert say(message, lang)
    assert run(judge, packages[200], packages[200].solution).status is Status.ACCEPTED


def test_a_sleeper_is_ended_by_the_wall(judge, packages):
    verdict = run(judge, packages[200], HEAD_200 + "    import time; time.sleep(1000)\n")
    assert verdict.status is Status.TIME_LIMIT
    assert verdict.message.code == "wall_limit"


def test_hidden_cases_tell_neither_values_nor_messages_nor_output(judge, packages):
    secret = HEAD_200 + "    print('SECRET', reqs)\n    raise ValueError('SECRET', page_table)\n"
    verdict = run(judge, packages[200], secret)
    data = verdict.to_json()
    hidden = [c for c in data["cases"] if c["group"] == "hidden"]
    assert "SECRET" not in json.dumps(hidden)
    assert {json.dumps(c["message"]) for c in hidden} == {
        json.dumps({"code": "exception", "params": {"type": "ValueError", "line": 5}})
    }
    public = [c for c in data["cases"] if c["group"] == "public"]
    assert all("SECRET" in c["output"] and "SECRET" in c["message"]["params"]["text"] for c in public)


def test_what_is_shown_comes_from_a_process_that_has_seen_no_hidden_case(judge, packages):
    """Else a submission could keep hidden inputs and print them in a public case, or put them into a counterexample."""
    keep = (
        "seen = []\n"
        + HEAD_200
        + (
            "    seen.append(len(reqs))\n"
            "    print('SEEN', len(seen))\n"
            "    if len(seen) > 4:\n"
            "        raise ValueError('SEEN', len(seen))\n"
            "    return [torch.tensor(len(seen))] * 4\n"
        )
    )
    verdict = run(judge, packages[200], keep)
    public = [c for c in verdict.cases if c.group == "public"]
    assert sorted(c.output for c in public) == [f"SEEN {i}\n" for i in (1, 2, 3, 4)]
    example = verdict.counterexample
    assert example["got"]["qo_indptr"]["tensor"]["data"] == 1


@pytest.mark.parametrize("line", ["os.write(4, b'\\x39\\x30\\x00\\xf0')", "os._exit(57)"])
def test_a_hidden_case_ends_without_numbers_that_the_submission_chose(judge, packages, line):
    body = packages[200].solution.split("\n", 3)[3]
    source = "import os\nimport torch\n\nseen = []\n\n\n" + body.replace(
        "    qo_lens,", f"    seen.append(1)\n    if len(seen) > 4:\n        {line}\n    qo_lens,", 1
    )
    verdict = run(judge, packages[200], source)
    assert verdict.passed == 4
    assert verdict.message.code in ("reply_over_limit", "ended_without_result")
    assert not {"size", "exit"} & verdict.message.params.keys()
    assert {c.message.code for c in verdict.cases if c.message} == {verdict.message.code}


def test_an_exception_of_ones_own_is_told_by_its_builtin_class(judge, packages):
    source = "class Leak(LookupError):\n    pass\n\n" + HEAD_200 + "    raise Leak('x')\n"
    verdict = run(judge, packages[200], source)
    assert {c.message.params["type"] for c in verdict.cases} == {"LookupError"}


def test_control_characters_do_not_reach_a_terminal(judge, packages):
    verdict = run(judge, packages[200], HEAD_200 + "    raise ValueError('\\x1b[2J\\u202eevil')\n")
    public = next(c for c in verdict.cases if c.group == "public")
    assert public.message.params["text"] == "[2Jevil"


def test_inputs_of_later_cases_are_not_there_to_be_read(judge, packages):
    ahead = (
        HEAD_200
        + "    import select\n    raise (LookupError if select.select([3], [], [], 0.02)[0] else KeyError)\n"
    )
    verdict = run(judge, packages[200], ahead)
    assert {c.message.params["type"] for c in verdict.cases} == {"KeyError"}


def test_the_sandbox_shows_only_what_the_problem_needs(judge, packages):
    root = str(Path(__file__).parents[2])
    look = f"""
import os, sys
def flashinfer_metadata(reqs, page_table, page_size):
    seen = [n for n in ("problems", "judge", "minisgl", "fakes", ".git", "var", "web") if os.path.exists({root!r} + "/" + n)]
    names = [n for n in ("minisgl", "flashinfer", "fake_kernels", "problems", "driver") if n in sys.modules]
    raise LookupError(repr((seen, names, sorted(os.environ), os.path.exists("/proc/self"), os.listdir("."))))
"""
    verdict = run(judge, packages[200], look, which="public")
    text = verdict.cases[0].message.params["text"]
    assert text in ("([], [], [], False, [])", "([], [], ['LC_CTYPE'], False, [])")


def test_several_at_once(judge, packages):
    results = []

    def work(source, want):
        results.append(run(judge, packages[200], source).status is want)

    jobs = [
        (packages[200].solution, Status.ACCEPTED),
        (packages[200].wrong["int64"].source, Status.WRONG_ANSWER),
    ] * 6
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [True] * 12


def test_stages_go_by_memory_and_by_number_the_least_recently_used_first(packages, monkeypatch):
    with Judge(children=1, keep_mb=1.0) as judge:
        for number in (200, 201, 200):
            assert run(judge, packages[number], packages[number].solution).status is Status.ACCEPTED
            assert list(judge._shelf.held) == [packages[number].version]
        judge._shelf.most_mb = KEEP_STAGES_MB  # as one has that was not told
        with monkeypatch.context() as patch:
            patch.setattr(judge._shelf, "most", 1)
            assert run(judge, packages[201], packages[201].solution).status is Status.ACCEPTED
            assert list(judge._shelf.held) == [packages[201].version]
        for number in (200, 201, 200):
            run(judge, packages[number], packages[number].solution)
        assert list(judge._shelf.held) == [packages[201].version, packages[200].version]
        assert all(0 < p.memory_mb < 200 for p in judge._shelf.held.values())


def test_no_process_and_no_descriptor_is_left(judge, packages):
    run(judge, packages[200], packages[200].solution)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(15):
        run(judge, packages[200], HEAD_200 + "    import os; os._exit(3)\n")
        run(judge, packages[200], packages[200].solution)
    settled = threading.Event()
    judge.background.submit(settled.set)
    assert settled.wait(20)
    assert len(os.listdir("/proc/self/fd")) <= before + 12


def test_a_tie_shows_an_input_that_tells_the_mistakes_apart(judge, tmp_path):
    """Two mistakes that the public cases can't tell apart, in a run of those alone."""
    from small_packages import write_package

    wrong = {
        "never_more_than_two": "def total(n):\n    return min(n, 2) + 1\n",
        "one_more": "def total(n):\n    return n + 1\n",
    }
    toml = "".join(
        f'[{name}]\nsection = "ch02#x"\ndiagnosis = {{ zh = "{name}", en = "{name}" }}\n' for name in wrong
    )
    cases = "def fixed():\n    return {'three': {'n': 3}}\n\n\ndef teach():\n    return {'four': {'n': 4}, 'one': {'n': 1}}\n"
    files = {
        "cases.py": cases + "\n\ndef generate(rng):\n    return {'n': 5}\n",
        "solution.py": "def total(n):\n    return n\n",
        "wrong/wrong.toml": toml,
        **{f"wrong/{name}.py": source for name, source in wrong.items()},
    }
    package = write_package(tmp_path, files=files, entry="total", signature="total(n)")
    verdict = run(judge, package, wrong["one_more"], which="public")
    (entry,) = verdict.diagnosis
    assert entry["kind"] == "tie"
    assert entry["names"] == list(wrong)
    assert entry["text"]["en"] == "(1) never_more_than_two (2) one_more"
    assert entry["apart"] == {
        "case": "four",
        "inputs": {"n": 4},
        "given": {"1": {"result": 3}, "2": {"result": 5}},
    }
    assert run(judge, package, wrong["one_more"]).diagnosis[0]["names"] == ["one_more"]
