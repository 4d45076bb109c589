"""The cases of one submission, in the order of its seed, with what came of them: checked, diagnosed, and told as far as
each may be told. Runs in the checker's process only, as `exam` does."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from judge.core import frames
from judge.core.case import HIDDEN, PUBLIC, TEACH, Case, Failure, Outcome
from judge.core.diagnose import Component, Diagnoser, Finding
from judge.core.rng import Rng
from judge.core.status import Status
from judge.core.values import display_outputs, printable, size_of, to_display
from judge.core.verdict import CaseResult, Message
from judge.exam import Exam, case_frame
from judge.patience import Patience
from judge.told import UNSUPPORTED, exception_message, redacted_ending

log = logging.getLogger(__name__)

SHOWN_MISMATCHES = 6
MOST_APART = 4096  # size of an output that is still shown to tell mistakes apart
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "Cannot allocate memory")
# Which cases a sitting has: all; the public ones; all but the random ones.
Which = Literal["all", "public", "fixed"]


def _is_for_want_of_memory(kind: str, text: str) -> bool:
    """Whether an exception of that type and text is Python's or torch's for an allocation that failed."""
    return kind == "MemoryError" or any(t in text for t in OUT_OF_MEMORY)


class Sitting:
    """The cases of one submission.

    Invariants: `cases[:n]` count (the public ones, then the fixed and random ones, each part shuffled by the seed); the
    rest are the teach cases.
    `results[i]`, `outcomes[i]` are filled when case i was answered.
    """

    def __init__(self, exam: Exam, seed: bytes, which: Which) -> None:
        self.exam = exam
        public = [i for i, c in enumerate(exam.cases) if c.group == PUBLIC]
        hidden = [i for i, c in enumerate(exam.cases) if c.group == HIDDEN and which != "public"]
        teach = [i for i, c in enumerate(exam.cases) if c.group == TEACH]
        fresh = 0 if which != "all" or exam.package.info.exhaustive else exam.package.info.random_cases
        drawn = [
            Case(f"random {i}", HIDDEN, exam.module.generate(Rng(seed, f"case {i}"))) for i in range(fresh)
        ]
        # Public cases first: what is shown of them must come from a process that has seen no hidden case.
        order = Rng(seed, "order")
        kept_back: list[int | Case] = [*hidden, *drawn]
        slots: list[int | Case] = [*order.shuffled(public), *order.shuffled(kept_back)]
        self.static: list[int | None] = [s if isinstance(s, int) else None for s in [*slots, *teach]]
        self.cases = [exam.cases[s] if isinstance(s, int) else s for s in [*slots, *teach]]
        self.frames = [exam.frames[s] if isinstance(s, int) else case_frame(s) for s in [*slots, *teach]]
        self.n = len(slots)
        self.answers: list[Mapping[str, Any] | None] = [
            None if s is None else exam.answers[s] for s in self.static
        ]
        self.answer_frames = [b"" if s is None else exam.answer_frames[s] for s in self.static]
        self.drawn_mistakes: dict[str, list[Outcome]] = {}
        self.outcomes: list[Outcome] = [None] * len(self.cases)
        self.results: dict[int, CaseResult] = {}
        self.source_lines = 0
        self.patience = Patience()

    @property
    def drawn(self) -> list[int]:
        """Indices of the random cases: those whose answers have to be asked for."""
        return [i for i in range(self.n) if self.static[i] is None]

    def learn_answers(self, replies: list[bytes]) -> None:
        for i, reply in zip(self.drawn, replies, strict=True):
            self.answers[i] = self.exam.answer(reply, self.cases[i])
            self.answer_frames[i] = reply

    def learn_mistake(self, name: str, replies: list[bytes]) -> None:
        self.drawn_mistakes[name] = [self.exam.outcome(r) for r in replies]

    def check(self, index: int, reply: bytes, output: bytes, cpu_ms: float) -> CaseResult:
        """Judge one reply. Whatever is raised while looking at it is the submission's error."""
        case = self.cases[index]
        result = self._result(case, cpu_ms)
        try:
            with self.patience.spend():
                try:
                    self._judge(result, index, reply)
                except (MemoryError, RuntimeError) as error:
                    if not _is_for_want_of_memory(type(error).__name__, str(error)):
                        raise
                    # Tensors in cycles of earlier checks may hold it: the collector counts objects, not their bytes.
                    gc.collect()
                    self._judge(result, index, reply)
        except frames.FrameError:
            result.status, result.message = Status.RUNTIME_ERROR, Message("broken_reply")
        except Exception:  # a value that breaks the checking code was made to do so, or that code is wrong
            log.warning("a value could not be checked", exc_info=True)
            result.status, result.message = Status.RUNTIME_ERROR, Message("check_failed")
        if case.group != HIDDEN:
            result.output = printable(output.decode("utf-8", "replace"))
        self.results[index] = result
        return result

    def end(self, index: int, status: Status, message: Message | None) -> CaseResult:
        """Record a case that was killed, or not run at all."""
        result = self._result(self.cases[index], 0.0)
        if message is not None and result.group == HIDDEN:
            message = redacted_ending(message)
        result.status, result.message = status, message
        self.results[index] = result
        return result

    def _result(self, case: Case, cpu_ms: float) -> CaseResult:
        hidden = case.group == HIDDEN
        time_ms = round(cpu_ms / 10) * 10 if hidden else round(cpu_ms)
        return CaseResult("hidden" if hidden else case.name, case.group, Status.ACCEPTED, time_ms)

    def _judge(self, result: CaseResult, index: int, reply: bytes) -> None:
        want = self.answers[index]
        if want is None:
            raise RuntimeError("a case was checked before its answer was known")
        outcome = self.exam.outcome(reply)
        self.outcomes[index] = outcome
        hidden = result.group == HIDDEN
        if outcome is None:
            raise frames.FrameError("an empty reply")
        if isinstance(outcome, Failure):
            self._failed(result, outcome, hidden)
            return
        static = self.static[index]
        if reply == self.answer_frames[index]:
            found = []  # the answer itself: nothing that is derived from it can be wrong
        elif static is None:
            found = self.exam.mismatches(self.cases[index].inputs, outcome, want)
        else:
            found = self.exam.mismatches_of(static, reply, outcome)
        if not hidden:
            result.got = display_outputs(outcome)
        if found:
            result.status = Status.WRONG_ANSWER
            shown = found[:SHOWN_MISMATCHES]
            if hidden:
                shown = list({(m.code, m.field): m for m in (one.redacted() for one in found)}.values())
                shown = shown[:SHOWN_MISMATCHES]
            else:
                result.mismatches = shown
            result.message = Message("mismatches", {"list": [m.to_json() for m in shown]})

    def _failed(self, result: CaseResult, failure: Failure, hidden: bool) -> None:
        if _is_for_want_of_memory(failure.type, failure.text):
            result.status = Status.MEMORY_LIMIT
            result.message = Message("memory_limit", {"limit_mb": self.exam.package.limits.memory_mb})
            return
        result.status = Status.RUNTIME_ERROR
        if failure.type == UNSUPPORTED:
            field, _, name = failure.text.partition("\0")
            params = {"field": "" if hidden else field, "type": "unsupported" if hidden else name}
            result.message = Message("unsupported_type", params)
            return
        result.message = exception_message("exception", failure, self.source_lines, hidden)

    def finish(self) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Diagnosis and counterexample. Raises Impatient."""
        with self.patience.spend():
            return self._diagnosis(), self._counterexample()

    def possible_mistakes(self) -> list[str]:
        """Known mistakes that the seed-independent cases do not rule out. Raises Impatient."""
        at = [i for i in range(self.n) if self.static[i] is not None]
        known = {name: [given[self.static[i] or 0] for i in at] for name, given in self.exam.mistakes.items()}
        answers = [self.answers[i] or {} for i in at]

        def deviation_of(name: str, case: int) -> frozenset[Component]:
            return self.exam.deviation(name, self.static[at[case]] or 0)

        diagnoser = Diagnoser(self.exam.comparer, answers, known, deviation_of)
        with self.patience.spend():
            return diagnoser.possible([self.outcomes[i] for i in at])

    def _diagnosis(self) -> list[dict[str, Any]]:
        known = {
            name: [self._mistake(name, static, i) for i, static in enumerate(self.static[: self.n])]
            for name in self.exam.mistakes
            if name in self.drawn_mistakes or not self.drawn
        }
        answers = [a or {} for a in self.answers[: self.n]]
        diagnoser = Diagnoser(self.exam.comparer, answers, known, self._deviation_of)
        outcomes = self.outcomes[: self.n]
        findings = diagnoser.diagnose(outcomes)
        entries = [self._entry(f, diagnoser) for f in findings]
        if not entries:
            entries = self._invariants() + self._common()
        return entries

    def _deviation_of(self, name: str, index: int) -> frozenset[Component] | None:
        static = self.static[index]
        return None if static is None else self.exam.deviation(name, static)

    def _mistake(self, name: str, static: int | None, index: int) -> Outcome:
        if static is not None:
            return self.exam.mistakes[name][static]
        drawn = self.drawn_mistakes.get(name)
        return drawn[self.drawn.index(index)] if drawn else None

    def _entry(self, finding: Finding, diagnoser: Diagnoser) -> dict[str, Any]:
        wrong = [self.exam.package.wrong[n] for n in finding.names]
        marks = [f"({i}) " if len(wrong) > 1 else "" for i in range(1, len(wrong) + 1)]
        text = {
            "zh": "".join(m + w.diagnosis.zh for m, w in zip(marks, wrong, strict=True)),
            "en": " ".join(m + w.diagnosis.en for m, w in zip(marks, wrong, strict=True)),
        }
        return {
            "kind": finding.kind,
            "code": finding.kind,
            "params": {"agreed": finding.agreed, "failed": finding.failed, **finding.params},
            "names": list(finding.names),
            "fields": list(finding.fields),
            "text": text if wrong else None,
            "section": wrong[0].section if wrong else None,
            "apart": self._apart(finding.names, diagnoser) if finding.kind == "tie" else None,
        }

    def _apart(self, names: tuple[str, ...], diagnoser: Diagnoser) -> dict[str, Any] | None:
        """The smallest case that may be shown and on which mistakes differ that this run could not tell apart."""
        cases = self.exam.cases
        for index in (i for group in (TEACH, PUBLIC) for i, c in enumerate(cases) if c.group == group):
            given = [self.exam.mistakes[name][index] for name in names]
            values = [g for g in given if isinstance(g, Mapping)]
            if len(values) < 2 or all(diagnoser.alike(values[0], v) for v in values):
                continue
            if any(size_of(dict(v)) > MOST_APART for v in values):
                continue
            return {
                "case": cases[index].name,
                "inputs": {k: to_display(v) for k, v in cases[index].inputs.items()},
                "given": {
                    str(i): {k: to_display(v) for k, v in g.items()}
                    for i, g in enumerate(given, 1)
                    if isinstance(g, Mapping)
                },
            }
        return None

    def _invariants(self) -> list[dict[str, Any]]:
        rule = getattr(self.exam.checks, "invariants", None)
        seen: dict[str, dict[str, str]] = {}
        for i in range(self.n):
            outcome = self.outcomes[i]
            failed = i in self.results and self.results[i].status is Status.WRONG_ANSWER
            if rule is None or not failed or not isinstance(outcome, Mapping):
                continue
            try:
                broken: Iterable[dict[str, str]] = rule(self.cases[i].inputs, outcome)
                for text in broken:
                    seen.setdefault(text["en"], text)
            except Exception:  # noqa: BLE001, S112  an output so odd that the rules cannot be asked of it
                continue
        return [_note("invariant", text) for text in list(seen.values())[:3]]

    def _common(self) -> list[dict[str, Any]]:
        """Features that hold for exactly the failing cases, the teach cases that were run among them: what is said must fit
        the small case that is shown beside it."""
        features: Callable[[Mapping[str, Any]], dict[str, bool]] | None = getattr(
            self.exam.module, "features", None
        )
        if features is None:
            return []
        rows = [
            (features(self.cases[i].inputs), self.results[i].status is not Status.ACCEPTED)
            for i in sorted(self.results)
            if self.results[i].status is not Status.NOT_RUN
        ]
        if not rows or all(bad for _, bad in rows) or not any(bad for _, bad in rows):
            return []
        names = [n for n in rows[0][0] if all(row[n] == bad for row, bad in rows)]
        return [_note("common", self.exam.module.FEATURES[n]) for n in names[:2]]

    def _counterexample(self) -> dict[str, Any] | None:
        """The smallest teach case that failed, whole. Teach cases are in order of size."""
        for i in range(self.n, len(self.cases)):
            result = self.results.get(i)
            if result is None or result.status in (Status.ACCEPTED, Status.NOT_RUN):
                continue
            case, want = self.cases[i], self.answers[i] or {}
            return {
                "case": case.name,
                "inputs": {k: to_display(v) for k, v in case.inputs.items()},
                "expected": {k: to_display(v) for k, v in want.items()},
                "got": result.got,
                "status": str(result.status),
                "message": result.message.to_json() if result.message else None,
                "mismatches": [m.to_json() for m in result.mismatches],
            }
        return None


def _note(kind: str, text: Mapping[str, str]) -> dict[str, Any]:
    return {
        "kind": kind,
        "code": kind,
        "params": {},
        "names": [],
        "fields": [],
        "text": dict(text),
        "section": None,
        "apart": None,
    }
