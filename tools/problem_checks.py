"""The gate for problem packages: what `tools/problems.py verify` demands of each. Every check yields complaints; a
package without any is fit to be shown."""

from __future__ import annotations

import ast
import json
import random
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from judge.core.case import PUBLIC, Case
from judge.core.compare import DEFAULT_TOLERANCE
from judge.core.status import Status
from judge.core.values import to_display
from judge.core.verdict import Verdict, overall
from judge.dialogue import converse
from judge.exam import Exam, case_frame
from judge.judge import Judge
from judge.packages import LANGS, ROOT, Package
from judge.sandbox.client import Zygote
from judge.sandbox.local import LocalZygote
from judge.sandbox.process import ChildLimits, Ending
from judge.sitting import Sitting
from judge.staging import load_frame, scene_of
from tools import steps
from tools.problem_attacks import attacks
from tools.problem_runs import possible_runs
from tools.steps_track import find_section, in_track, load_track

PART_OF_LIMITS = 5  # the reference may use a fifth
# Problems are verified side by side in threads, while a package's check may set what a process has once (the engine's
# context, the fakes' mode): the checker of a judge is one thread too.
CHECKING = threading.Lock()
CODE_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass
class Report:
    """What verifying one package found. `slowest_ms` is the reference's longest total CPU time."""

    package: Package
    complaints: list[str] = field(default_factory=list)
    cases: int = 0
    wrong: int = 0
    refused_by_fixed: int = 0
    diagnosed: int = 0
    attacks: int = 0
    slowest_ms: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.complaints


def verify(judge: Judge, package: Package, seeds: int) -> Report:
    """All checks of one package. `seeds`: how many sittings the reference and each wrong solution get."""
    report = Report(package)
    torch.set_num_threads(1)  # cases are tiny, and problems are verified beside each other
    start = time.monotonic()
    for check in (statements, sections, targets, runs):
        report.complaints += check(package)
    judge.start()
    for proof in (public_answers, forged_answers):
        report.complaints += proof(package, judge.references)
    judge.warm(package)
    stream = random.Random(f"{package.id} {package.version}")
    draws = [stream.randbytes(16) for _ in range(seeds)]
    report.complaints += list(_reference(judge, package, draws, report))
    report.complaints += list(_wrong(judge, package, draws, report))
    for name, program in attacks(package):
        report.attacks += 1
        verdict = judge.judge(package, program.encode(), draws[0], which="fixed")
        if verdict.status is Status.ACCEPTED:
            report.complaints.append(f"accepted without solving it: {name}")
    report.seconds = time.monotonic() - start
    return report


def statements(package: Package) -> list[str]:
    """Both statements name the same things: every `code span` of one stands in the other."""
    spans = {lang: set(CODE_SPAN.findall(package.statement(lang))) for lang in LANGS}
    complaints = [
        f"statement.{one}.md has `{span}`, statement.{other}.md has not"
        for one, other in (("zh", "en"), ("en", "zh"))
        for span in sorted(spans[one] - spans[other])
    ]
    if package.info.signature not in package.statement("en"):
        complaints.append(f"the statements do not give the signature {package.info.signature}")
    for lang in LANGS:
        if not re.search(r"\{\{case ", package.text(f"statement.{lang}.md")):
            complaints.append(f"statement.{lang}.md shows no public case ({{{{case NAME}}}})")
    return complaints


def sections(package: Package) -> list[str]:
    """Diagnoses point to sections that exist, and the chapter or track lists the problem."""
    complaints = [
        f"wrong/wrong.toml: {wrong.name} points to {wrong.section}, which is no section"
        for wrong in package.wrong.values()
        if find_section(wrong.section) is None
    ]
    if in_track(package.id):
        if package.id not in load_track().problems:
            complaints.append(f"steps/f/track.toml does not list problem {package.id}")
    elif package.id not in steps.get_chapter(package.chapter).problems:
        complaints.append(f"steps/ch{package.chapter:02}/chapter.toml does not list problem {package.id}")
    return complaints


def targets(package: Package) -> list[str]:
    """A graft's target is looked up where it stands: no module of the tree imports it by value."""
    if package.kind != "graft" or package.target is None:
        return []
    path, _, symbol = package.target.partition(":")
    if "." in symbol:
        return []  # a method is reached through its class
    module = path.removesuffix(".py").replace("/", ".")
    complaints = []
    for name in steps.tree_files(package.chapter):
        tree = ast.parse((ROOT / name).read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == module:
                complaints += [
                    f"{name}:{node.lineno} imports {symbol} by value" for a in node.names if a.name == symbol
                ]
    return complaints


def runs(package: Package) -> list[str]:
    """`runs` says what the package's imports allow, no more and no less."""
    possible = possible_runs(package)
    if list(package.info.runs) != possible:
        return [f"runs = {list(package.info.runs)}, but what it imports allows {possible}"]
    return []


def run_program(
    package: Package, exam: Exam, zygote: Zygote | LocalZygote, source: str, frames: Sequence[bytes]
) -> list[bytes]:
    """The replies of the reference or of a known mistake for these cases, from a child of its own; empty from where it
    ended."""
    limits = package.limits
    many = 4 + len(frames) // 20
    child_limits = ChildLimits(limits.case_ms * 4, limits.total_ms * many, limits.memory_mb, 64 * many, 4096)
    stage = zygote.stage(scene_of(package, stubbed=False))
    try:
        child = stage.spawn(child_limits)
        try:
            replies = [b""] * len(frames)
            if isinstance(child.exchange(load_frame(package, source), 5000), Ending):
                return replies
            for i, frame in enumerate(frames):
                answer = (
                    converse(child, frame, exam.dialogue(frame).step) if exam.stubs else child.exchange(frame)
                )
                if isinstance(answer, Ending):
                    break
                replies[i] = answer.data
            return replies
        finally:
            child.close()
    finally:
        stage.close()


def run_reference(package: Package, exam: Exam, zygote: Zygote | LocalZygote) -> list[bytes]:
    """The reference's replies for an exam's seed-independent cases. Raises RuntimeError if it does not answer one."""
    replies = run_program(package, exam, zygote, package.solution, exam.frames)
    for case, reply in zip(exam.cases, replies, strict=True):
        if not reply:
            raise RuntimeError(f"the reference does not answer case {case.name}")
    return replies


def freeze(package: Package, zygote: Zygote | LocalZygote) -> str:
    """The text of public.json: the public cases of cases.py with the reference's answers."""
    torch.set_num_threads(1)
    exam = Exam(package)
    exam.cases = [Case(n, PUBLIC, i) for n, i in exam.module.public().items()]
    exam.frames = [case_frame(c) for c in exam.cases]
    exam.learn_answers(run_reference(package, exam, zygote))
    notes: Mapping[str, Any] = getattr(exam.module, "NOTES", {})
    items = [
        {
            "name": case.name,
            "note": notes.get(case.name),
            "inputs": {k: to_display(v) for k, v in case.inputs.items()},
            "expected": {k: to_display(v) for k, v in answer.items()},
        }
        for case, answer in zip(exam.cases, exam.answers, strict=True)
    ]
    return json.dumps(items, ensure_ascii=False, indent=1) + "\n"


def public_answers(package: Package, zygote: Zygote | LocalZygote) -> list[str]:
    """public.json is what cases.py and the reference give today; floats within the problem's tolerance, since the last
    bits of a sum depend on the processor's instructions."""
    tolerance = {**DEFAULT_TOLERANCE, **package.info.tolerance}
    if not _agree(json.loads(package.text("public.json")), json.loads(freeze(package, zygote)), tolerance):
        return ["public.json is out of date: run `python tools/problems.py freeze` and look at the change"]
    return []


def _agree(kept: Any, made: Any, tolerance: Mapping[str, float], dtype: str = "float64") -> bool:
    """Whether two display forms are the same, floats within the tolerance of their dtype."""
    if isinstance(kept, dict) and isinstance(made, dict):
        dtype = kept["dtype"] if kept.keys() == {"dtype", "shape", "data"} else dtype
        return kept.keys() == made.keys() and all(_agree(kept[k], made[k], tolerance, dtype) for k in kept)
    if isinstance(kept, list) and isinstance(made, list):
        pairs = zip(kept, made, strict=False)
        return len(kept) == len(made) and all(_agree(a, b, tolerance, dtype) for a, b in pairs)
    if isinstance(kept, float) and isinstance(made, float):
        return abs(kept - made) <= tolerance.get(dtype, 0.0) * max(1.0, abs(kept))
    return type(kept) is type(made) and bool(kept == made)


def forged_answers(package: Package, zygote: Zygote | LocalZygote) -> list[str]:
    """Outputs that only look like the reference's are refused by the fixed cases."""
    exam = Exam(package)
    exam.learn_answers(run_reference(package, exam, zygote))
    forgeries: dict[str, list[dict[str, Any]]] = {
        "zeros": [_map(a, lambda t: t * 0) for a in exam.answers],
        "mean": [_map(a, _mean) for a in exam.answers],
        "another case's answer": [dict(a) for a in (*exam.answers[1:], exam.answers[0])],
        "inputs": [
            dict.fromkeys(a, next(iter(c.inputs.values())))
            for a, c in zip(exam.answers, exam.cases, strict=True)
        ],
        "the answer twice": [_map(a, _twice) for a in exam.answers],
    }
    complaints = []
    if not _has_tensor(exam.answers):  # what is done to tensors leaves other answers as they are
        forgeries = {k: v for k, v in forgeries.items() if k in ("another case's answer", "inputs")}
    for name, outputs in forgeries.items():
        hidden = [i for i, c in enumerate(exam.cases) if c.group == "hidden"]
        with CHECKING:
            refused = any(exam.mismatches(exam.cases[i].inputs, outputs[i], exam.answers[i]) for i in hidden)
        if not refused:
            complaints.append(f"forged outputs pass all fixed cases: {name}")
    return complaints


def _map(outputs: Mapping[str, Any], change: Any) -> dict[str, Any]:
    return {k: _mapped(v, change) for k, v in outputs.items()}


def _mapped(value: Any, change: Any) -> Any:
    """`value` with every tensor in it changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(v, change) for v in value)
    if isinstance(value, dict):
        return {k: _mapped(v, change) for k, v in value.items()}
    return value


def _has_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_tensor(v) for v in value)
    if isinstance(value, dict):
        return any(_has_tensor(v) for v in value.values())
    return isinstance(value, torch.Tensor)


def _mean(tensor: Any) -> Any:
    return (tensor * 0 + tensor.double().mean().nan_to_num()).to(tensor.dtype)


def _twice(tensor: Any) -> Any:
    return torch.cat([tensor.reshape(-1), tensor.reshape(-1)])


def _reference(judge: Judge, package: Package, draws: list[bytes], report: Report) -> Iterator[str]:
    for seed in draws:
        verdict = judge.judge(package, package.solution.encode(), seed)
        report.cases = max(report.cases, verdict.total)
        report.slowest_ms = max(report.slowest_ms, verdict.time_ms)
        if verdict.status is not Status.ACCEPTED:
            yield f"the reference gets {verdict.status} with seed {seed.hex()}: {_first_message(verdict)}"
            return
        slow = max(c.time_ms for c in verdict.cases)
        if slow * PART_OF_LIMITS > package.limits.case_ms:
            yield f"the reference takes {slow} ms for a case; over a fifth of {package.limits.case_ms} ms"
            return
        if verdict.time_ms * PART_OF_LIMITS > package.limits.total_ms:
            yield f"the reference takes {verdict.time_ms} ms in all; over a fifth of {package.limits.total_ms} ms"
            return


def _wrong(judge: Judge, package: Package, draws: list[bytes], report: Report) -> Iterator[str]:
    """Each wrong solution is refused by the fixed cases alone, and is named as itself and as nothing else: in the sandbox
    with the fixed cases and with one draw, and, from its outputs, with all draws."""
    rehearsed = _rehearse(judge, package, draws)
    for wrong in package.wrong.values():
        report.wrong += 1
        alone = judge.judge(package, wrong.source.encode(), draws[0], which="fixed")
        if any(c.group == "hidden" and c.status is not Status.ACCEPTED for c in alone.cases):
            report.refused_by_fixed += 1
        else:
            yield f"wrong/{wrong.name}.py passes all fixed hidden cases"
        whole = judge.judge(package, wrong.source.encode(), draws[0])
        complaints = {_misdiagnosis(v, wrong.name, wrong.verdict) for v in (alone, whole)}
        complaints |= rehearsed.get(wrong.name, set())
        complaints.discard(None)
        if complaints:
            yield f"wrong/{wrong.name}.py: {'; '.join(sorted(c for c in complaints if c))}"
        else:
            report.diagnosed += 1


def _rehearse(judge: Judge, package: Package, draws: list[bytes]) -> dict[str, set[str | None]]:
    """What would be said of each known mistake with each draw: its outputs, taken once over all cases of all draws, go
    past the checker's own code. Complaints by mistake."""
    zygote = judge.references
    exam, static_replies = _learned(package, zygote)
    sittings = [Sitting(exam, seed, "all") for seed in draws]
    frames = [sitting.frames[i] for sitting in sittings for i in sitting.drawn]
    names = [w.name for w in package.wrong.values() if w.verdict != Status.TIME_LIMIT]
    sources = {"": package.solution, **{name: package.wrong[name].source for name in names}}
    given = {
        name: _by_sitting(sittings, run_program(package, exam, zygote, source, frames))
        for name, source in sources.items()
    }
    complaints: dict[str, set[str | None]] = {name: set() for name in names}
    for number, seed in enumerate(draws):
        for name in names:
            sitting = Sitting(exam, seed, "all")
            sitting.learn_answers(given[""][number])
            for other in names:
                sitting.learn_mistake(other, given[other][number])
            drawn = dict(zip(sitting.drawn, given[name][number], strict=True))
            for i in range(sitting.n):
                static = sitting.static[i]
                reply = drawn[i] if static is None else static_replies[name][static]
                if not reply:  # it ended here, and what comes after was not run
                    break
                with CHECKING:
                    sitting.check(i, reply, b"", 0.0)
            status = overall([result.status for result in sitting.results.values()])
            if status != package.wrong[name].verdict:
                complaints[name].add(f"gets {status} with seed {seed.hex()}")
            with CHECKING:
                found, _ = sitting.finish()
            complaints[name].add(_not_itself(found, name))
    return complaints


def _learned(package: Package, zygote: Zygote | LocalZygote) -> tuple[Exam, dict[str, list[bytes]]]:
    """The exam with the answers and what every known mistake gives for its seed-independent cases; and these replies."""
    exam = Exam(package)
    exam.learn_answers(run_reference(package, exam, zygote))
    replies = {
        wrong.name: run_program(package, exam, zygote, wrong.source, exam.frames)
        for wrong in package.wrong.values()
        if wrong.verdict != Status.TIME_LIMIT
    }
    exam.mistakes = {name: [exam.outcome(r) for r in given] for name, given in replies.items()}
    return exam, replies


def _by_sitting(sittings: Sequence[Sitting], replies: Sequence[bytes]) -> list[list[bytes]]:
    waiting = iter(replies)
    return [[next(waiting) for _ in sitting.drawn] for sitting in sittings]


def _misdiagnosis(verdict: Verdict, name: str, status: str) -> str | None:
    if verdict.status != status:
        return f"gets {verdict.status}, its verdict should be {status} ({_first_message(verdict)})"
    return None if status == Status.TIME_LIMIT else _not_itself(verdict.diagnosis, name)


def _not_itself(diagnosis: Sequence[Mapping[str, Any]], name: str) -> str | None:
    named = [(e["kind"], *e["names"]) for e in diagnosis]
    return None if named == [("mistake", name)] else f"is diagnosed as {named}"


def _first_message(verdict: Verdict) -> str:
    from judge.core.wording import say

    messages = [verdict.message, *(c.message for c in verdict.cases)]
    return next((say(m, "en") for m in messages if m is not None), "no message")
