"""One problem version as its checker knows it: cases, answers, what known mistakes give.

Runs in the checker's process only. It executes the package's `cases.py`, `check.py` and `stub.py`, which are ours, and
never a submission or a reference: replies are bytes, and become values by `core.frames`.
"""

from __future__ import annotations

import hashlib
import types
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from judge.core import frames
from judge.core.case import HIDDEN, PUBLIC, TEACH, Case, Failure, Outcome
from judge.core.compare import Comparer
from judge.core.diagnose import Component, Diagnoser
from judge.core.values import from_display, size_of
from judge.core.verdict import Mismatch
from judge.dialogue import Dialogue
from judge.packages import Package, PackageError
from judge.patience import Patience
from judge.told import reported_failure

MOST_MISMATCHES = 40
REMEMBERED = 1024  # lists of mismatches, none longer than REMEMBERED_CHARS when written out
REMEMBERED_CHARS = 4096


class Exam:
    """A problem version.

    Invariants: `cases` are the seed-independent ones (public, fixed, teach), in a fixed order; `answers[i]` is the
    reference's output for case i once `learn(SOLUTION, ...)` was called; `mistakes[name][i]` likewise.
    """

    def __init__(self, package: Package) -> None:
        self.package = package
        self.module = _execute(package, "cases.py")
        self.checks = _execute(package, "check.py") if "check.py" in package.files else None
        self.stubs = _execute(package, "stub.py") if package.has_stub else None
        self.comparer = Comparer(package.info.tolerance, package.info.nan_ok, package.info.signed_zero)
        public = [
            Case(c.name, PUBLIC, {k: from_display(v) for k, v in c.inputs.items()}, c.note or {})
            for c in package.public
        ]
        fixed = [Case(n, HIDDEN, i) for n, i in self.module.fixed().items()]
        teach = [Case(n, TEACH, i) for n, i in self.module.teach().items()]
        teach.sort(key=lambda case: size_of(dict(case.inputs)))
        self.cases = [*public, *fixed, *teach]
        self.frames = [case_frame(c) for c in self.cases]
        self.answers: list[Mapping[str, Any]] = []
        self.answer_frames: list[bytes] = []
        self.mistakes: dict[str, list[Outcome]] = {}
        self._deviations: dict[str, list[frozenset[Component]]] = {}
        self._seen: OrderedDict[tuple[int, bytes], list[Mismatch]] = OrderedDict()

    def dialogue(self, frame: bytes, patience: Patience | None = None) -> Dialogue:
        """What stands behind the calls of a case, given as its frame, on the account of `patience` (None: one of its
        own). Raises PackageError."""
        assert self.stubs is not None
        inputs = frames.decode(memoryview(frame)[frames.LENGTH.size :]).body["inputs"]
        try:
            return Dialogue(self.stubs.Stub(inputs), patience or Patience())
        except Exception as error:
            raise self.blame("stub.py", error) from error

    def blame(self, name: str, error: Exception) -> PackageError:
        """What an exception from the package's own code is to those who must mend it."""
        path = self.package.folder / name
        return PackageError(path, f"{type(error).__name__}: {error}", _line_in(error, str(path)))

    def learn_answers(self, replies: list[bytes]) -> None:
        """Take the reference's replies for `cases`. Raises PackageError if it failed on one."""
        self.answers = [self.answer(r, c) for r, c in zip(replies, self.cases, strict=True)]
        self.answer_frames = replies

    def answer(self, reply: bytes, case: Case) -> Mapping[str, Any]:
        outcome = self.outcome(reply)
        if isinstance(outcome, Failure) or outcome is None:
            raise PackageError(
                self.package.folder / "solution.py", f"the reference fails on case {case.name}: {outcome}"
            )
        return outcome

    def outcome(self, reply: bytes) -> Outcome:
        """What a program gave, from its reply. An empty reply: it was not run. Raises FrameError."""
        if not reply:
            return None
        frame = frames.decode(reply)
        if frame.kind == "outputs":
            return self.named(frame.body)
        if frame.kind == "failed" and isinstance(frame.body, dict):
            return reported_failure(frame.body)
        raise frames.FrameError(f"a reply of kind {frame.kind}")

    def named(self, value: Any) -> Mapping[str, Any]:
        """Outputs by name. A value that doesn't have as many parts as the problem names stays whole, as `result`."""
        names = self.package.info.outputs
        if "driver.py" in self.package.files:
            whole = isinstance(value, dict) and all(type(k) is str for k in value)
            return value if whole else {"result": value}
        if not names:
            return {"result": value}
        if isinstance(value, tuple | list) and len(value) == len(names):
            return dict(zip(names, value, strict=True))
        return {"result": value}

    def mismatches(
        self, inputs: Mapping[str, Any], got: Mapping[str, Any], want: Mapping[str, Any]
    ) -> list[Mismatch]:
        """All that is wrong with an output: compared with the answer, then what the package's check derives."""
        if "result" in got and "result" not in want:
            names = ", ".join(want)
            return [
                Mismatch(
                    "output_count",
                    "result",
                    {"expected": len(want), "names": names, "got": _kind(got["result"])},
                )
            ]
        found = self.comparer.outputs(got, want)
        # Evidence costs time in proportion to the output: none is taken of what is far larger than an answer.
        if self.checks is not None and size_of(dict(got)) <= 4 * size_of(dict(want)) + 1024:
            found += self.checks.check(inputs, got, want)
        return found[:MOST_MISMATCHES]

    def deviation(self, name: str, index: int) -> frozenset[Component]:
        """In what a known mistake differs from the answer on seed-independent case `index`, found out once."""
        if name not in self._deviations:
            diagnoser = Diagnoser(self.comparer, self.answers, self.mistakes)
            self._deviations[name] = diagnoser.deviations(name)
        return self._deviations[name][index]

    def mismatches_of(self, index: int, reply: bytes, got: Mapping[str, Any]) -> list[Mismatch]:
        """`mismatches` for seed-independent case `index`, remembered by the reply's bytes: what is wrong with an output
        depends on nothing else, and most submissions give the same few."""
        key = (index, hashlib.sha256(reply).digest())
        if key in self._seen:
            return self._seen[key]
        found = self.mismatches(self.cases[index].inputs, got, self.answers[index])
        if sum(len(str(m.to_json())) for m in found) <= REMEMBERED_CHARS:
            self._seen[key] = found
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return found


def case_frame(case: Case) -> bytes:
    return frames.encode("case", {"inputs": dict(case.inputs)})


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}[{len(value)}]"
    return type(value).__name__


def _execute(package: Package, name: str) -> types.ModuleType:
    path = package.folder / name
    module = types.ModuleType(f"problem_{package.id}_{name.removesuffix('.py')}")
    module.__file__ = str(path)
    try:
        exec(compile(package.text(name), str(path), "exec"), module.__dict__)
    except Exception as error:
        line = error.lineno if isinstance(error, SyntaxError) else _line_in(error, str(path))
        raise PackageError(path, f"{type(error).__name__}: {error}", line) from error
    return module


def _line_in(error: BaseException, path: str) -> int | None:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
