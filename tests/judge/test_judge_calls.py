"""Problems about calls: what the submission calls is with the checker, and so is the record of it."""

from __future__ import annotations

import time

import pytest
from small_packages import write_package

from judge.core.status import Status
from judge.core.wording import say
from judge.dialogue import MOST_CALLS
from judge.judge import JudgeError
from judge.sandbox.process import ChildLimits

SEED = bytes(range(16))
STUB = """
class Stub:
    def __init__(self, inputs):
        self.n, self.calls = inputs["n"], []

    def call(self, name, args, kwargs):
        self.calls.append(name)
        if name == "open":
            return None
        if name == "read":
            if "open" not in self.calls:
                raise RuntimeError("read before open")
            return args[0] * self.n
        raise AttributeError(f"no {name}")

    def outputs(self):
        return {"calls": self.calls}
"""
DRIVER = """
class Device:
    def __init__(self, call):
        self.open = lambda: call("open")
        self.read = lambda i: call("read", i)


def run(submission, inputs, call):
    return {"total": submission.total(Device(call), inputs["n"])}
"""
CASES = """
def fixed():
    return {"three": {"n": 3}, "none": {"n": 0}}


def teach():
    return {"one": {"n": 1}}


def generate(rng):
    return {"n": rng.integer(1, 6)}
"""
SOLUTION = """
def total(device, n):
    device.open()
    return sum(device.read(i) for i in range(n))
"""
OPENS_EACH_TIME = """
def total(device, n):
    result = 0
    for i in range(n):
        device.open()
        result += device.read(i)
    return result
"""
WRONG_TOML = """
[opens_each_time]
section = "ch02#x"
diagnosis = { zh = "每次都打开", en = "it opens each time" }
[never_opens]
verdict = "runtime_error"
section = "ch02#x"
diagnosis = { zh = "没有打开", en = "it never opens" }
"""
NEVER_OPENS = """
def total(device, n):
    return sum(device.read(i) for i in range(n))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    files = {
        "stub.py": STUB,
        "driver.py": DRIVER,
        "cases.py": CASES,
        "solution.py": SOLUTION,
        "wrong/opens_each_time.py": OPENS_EACH_TIME,
        "wrong/never_opens.py": NEVER_OPENS,
        "wrong/wrong.toml": WRONG_TOML,
    }
    folder = tmp_path_factory.mktemp("calls")
    return write_package(folder, files=files, entry="total", signature="total(device, n)")


def run(judge, package, source):
    return judge.judge(package, source.encode(), SEED)


def test_the_record_is_the_checkers(judge, package):
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED
    verdict = run(judge, package, OPENS_EACH_TIME)
    assert verdict.status is Status.WRONG_ANSWER
    assert [e["names"] for e in verdict.diagnosis] == [["opens_each_time"]]
    shown = next(c for c in verdict.cases if c.name == "first")
    assert shown.got["calls"] == ["open", "read", "open", "read"]


def test_what_a_call_raises_is_raised_where_it_was_called(judge, package):
    verdict = run(judge, package, NEVER_OPENS)
    assert verdict.status is Status.RUNTIME_ERROR
    shown = next(c for c in verdict.cases if c.name == "first")
    assert "read before open" in say(shown.message, "en")
    caught = """
def total(device, n):
    try:
        device.read(0)
    except RuntimeError:
        device.open()
    return sum(device.read(i) for i in range(n))
"""
    verdict = run(judge, package, caught)
    assert verdict.status is Status.WRONG_ANSWER  # the right total, after a call too many


@pytest.mark.parametrize(
    "body",
    [
        # the record that a right solution leaves, as if it were the driver's
        "return {'total': sum(i * n for i in range(n)), 'calls': ['open'] + ['read'] * n}",
        "return sum(i * n for i in range(n))",
        "device.open(); [device.read(i) for i in range(n)]; return 0",
    ],
)
def test_a_record_made_up_inside_is_not_believed(judge, package, body):
    assert run(judge, package, f"def total(device, n):\n    {body}\n").status is Status.WRONG_ANSWER


FORGED = """
import json, os, struct

def frame(kind, body):
    header = json.dumps({{"kind": kind, "body": body}}).encode()
    rest = struct.pack("<I", len(header)) + header
    return struct.pack("<I", len(rest)) + rest

def total(device, n):
    os.write(4, {what})
    os.read(3, 65536)
    return 0
"""


@pytest.mark.parametrize(
    "what",
    [
        'frame("call", {"d": {"name": "open", "args": [], "kwargs": {"d": {}}, "more": 1}})',
        'frame("call", {"d": {"name": 7, "args": [], "kwargs": {"d": {}}}})',
        'frame("call", {"d": {"name": "open"}})',
        'frame("call", 3)',
        'frame("call", None)',
        'frame("returned", 1)',
        'frame("call", {"d": {"name": "_" * 60000, "args": [], "kwargs": {"d": {}}}})',
        'frame("outputs", {"d": {"total": 0, "calls": []}}) * 2',
    ],
)
def test_a_forged_frame_harms_only_its_case(judge, package, what):
    verdict = run(judge, package, FORGED.format(what=what))
    assert verdict.status in (Status.WRONG_ANSWER, Status.RUNTIME_ERROR)
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED


def test_a_record_in_a_forged_reply_gives_way_to_the_checkers(judge, package):
    right = (
        'frame("outputs", {"d": {"total": sum(i * n for i in range(n)), "calls": ["open"] + ["read"] * n}})'
    )
    verdict = run(judge, package, FORGED.format(what=right))
    first = next(c for c in verdict.cases if c.name == "first")
    assert first.status is Status.WRONG_ANSWER
    assert first.got == {"total": 2, "calls": []}


def test_calls_without_end_are_ended(judge, package):
    source = "def total(device, n):\n    device.open()\n    while True:\n        device.read(1)\n"
    verdict = run(judge, package, source)
    assert verdict.status in (Status.RUNTIME_ERROR, Status.TIME_LIMIT)
    if verdict.status is Status.RUNTIME_ERROR:
        assert str(MOST_CALLS) in say(verdict.message, "en")
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED


def test_a_case_has_one_limit_of_time_for_all_its_exchanges(judge, package):
    source = """
import time

def total(device, n):
    device.open()
    end = time.process_time() + 0.45
    while time.process_time() < end:
        pass
    result = device.read(0)
    end = time.process_time() + 0.45
    while time.process_time() < end:
        pass
    return result
"""
    verdict = run(judge, package, source)
    assert verdict.status is Status.TIME_LIMIT
    assert verdict.message.params["limit_ms"] == package.limits.case_ms
    assert verdict.message.params["used_ms"] >= package.limits.case_ms


BREAKS = {
    "its beginning": (
        'self.n, self.calls = inputs["n"], []',
        'self.n, self.calls = inputs["m"], []',
        r"stub\.py:4",
    ),
    "what it gives": ("return args[0] * self.n", "return object()", r"stub\.py.*object"),
    "its notes": (
        'return {"calls": self.calls}',
        'return {"calls": self.calls[99]}',
        r"stub\.py.*IndexError",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_stub_that_is_broken_is_the_packages_fault_and_harms_nobody_else(judge, package, tmp_path, name):
    old, new, message = BREAKS[name]
    files = {
        "driver.py": DRIVER,
        "cases.py": CASES,
        "solution.py": SOLUTION,
        "stub.py": STUB.replace(old, new),
    }
    broken = write_package(tmp_path, files=files, id=391, entry="total", signature="total(device, n)")
    checker = judge._checker
    with pytest.raises(JudgeError, match=message):
        run(judge, broken, SOLUTION)
    assert judge._checker is checker
    assert checker.alive
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED


def test_a_call_that_is_answered_with_too_much_ends_the_case(judge, tmp_path):
    files = {
        "driver.py": DRIVER,
        "cases.py": CASES,
        "solution.py": SOLUTION,
        "stub.py": STUB.replace(
            "return args[0] * self.n", "return [0] * (args[0] ** 9) if args[0] > 5 else args[0] * self.n"
        ),
    }
    package = write_package(tmp_path, files=files, id=392, entry="total", signature="total(device, n)")
    verdict = run(judge, package, "def total(device, n):\n    device.open()\n    return device.read(6)\n")
    assert verdict.status is Status.RUNTIME_ERROR
    assert "calls" in say(verdict.message, "en")
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED


ENDLESS = """
class Stub:
    def __init__(self, inputs):
        self.n = 0

    def call(self, name, args, kwargs):
        while self.n < args[0]:
            self.n += 1

    def outputs(self):
        return {"n": self.n}
"""


def test_a_call_that_never_ends_costs_its_submission_only(judge, tmp_path, package):
    files = {
        "driver.py": "def run(submission, inputs, call):\n    return {'got': submission.total(call, inputs['n'])}\n",
        "cases.py": CASES,
        "solution.py": "def total(call, n):\n    call('count', n)\n    return n\n",
        "stub.py": ENDLESS,
    }
    package_of_loops = write_package(tmp_path, files=files, id=393, entry="total", signature="total(call, n)")
    judge.start()
    checker = judge._checker
    verdict = run(judge, package_of_loops, "def total(call, n):\n    call('count', 1 << 62)\n    return n\n")
    assert verdict.status is Status.RUNTIME_ERROR
    assert verdict.message.code in ("too_many_calls", "wall_limit")
    assert judge._checker is checker
    assert checker.alive
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED


@pytest.mark.parametrize("argument", ["1 << 62", "'x' * 65536", "[[[[[[0]]]]]]"])
def test_arguments_that_come_back_larger_are_the_submissions_error(judge, package, argument):
    """The stub multiplies by n: more than 64 bits, a text that is too long, or no number at all."""
    judge.start()
    checker = judge._checker
    verdict = run(
        judge, package, f"def total(device, n):\n    device.open()\n    return device.read({argument})\n"
    )
    assert verdict.status in (Status.WRONG_ANSWER, Status.RUNTIME_ERROR)
    assert judge._checker is checker


def test_waiting_for_the_checker_is_not_the_callers_time(judge, package, monkeypatch):
    """It answers everybody: outputs of others that are costly to look at must not end a right program, nor the reference."""
    judge.warm(package)
    asked = judge.call

    def busy(do, blobs=None, **request):
        if do == "step":
            time.sleep(0.05)
        return asked(do, blobs, **request)

    monkeypatch.setattr(judge, "call", busy)
    monkeypatch.setattr(ChildLimits, "total_wall_ms", 1000)
    assert run(judge, package, SOLUTION).status is Status.ACCEPTED
    sleeping = SOLUTION.replace("    device.open()", "    import time; time.sleep(0.4); device.open()")
    verdict = run(judge, package, sleeping)
    assert verdict.status is Status.TIME_LIMIT
    assert verdict.message.code == "wall_limit"
