"""The judge: takes a submission through the sandbox and past the checker, and says what came of it.

One `Judge` holds two zygotes (one for submissions, one for references), one checker process, and the stages of the
problems in use. The thread that calls `judge` is the coordinator of that submission: it owns the pipes and the clock,
and executes nothing of it.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from judge import rpc
from judge.checker import CheckerClient
from judge.core import frames
from judge.core.case import PUBLIC
from judge.core.source import SourceError, decode_source
from judge.core.status import Status
from judge.core.verdict import CaseResult, Message, Mismatch, Verdict, overall
from judge.exam import Which
from judge.packages import Package
from judge.sandbox.client import Child, ChildLimits, Ending, Reply, SandboxError, Scene, Stage, Zygote
from judge.trees import FAKES, tree_of

VERSION = "0.1.0"
TIER = "strong"
LOAD_MS = 2000  # CPU milliseconds for executing the submission's own top level
TEACH_MS = 500
KEEP_STAGES = 24
OnEvent = Callable[[dict[str, Any]], None]


class JudgeError(RuntimeError):
    """A fault of the judge or of a problem package; never the submission's doing."""


@dataclass
class Prepared:
    """A problem version ready to be judged: its two stages, and how far its known mistakes have been run."""

    package: Package
    stage: Stage
    reference: Stage
    static_frames: list[bytes]
    lock: threading.Lock = field(default_factory=threading.Lock)
    mistakes_known: bool = False

    def close(self) -> None:
        self.stage.close()
        self.reference.close()


@dataclass(frozen=True)
class Run:
    """What one program gave for a list of case frames: a reply each, empty where there was none."""

    replies: list[bytes]


class Judge:
    """Judges submissions, several at once.

    Invariants: at most `children` submissions run at a time, each with a slot number of its own; `_prepared` holds the
    problem versions in use, the least recently used first.
    """

    def __init__(self, children: int = 2, keep: int = KEEP_STAGES) -> None:
        self._keep = keep
        self._slots: queue.Queue[int] = queue.Queue()
        for slot in range(children):
            self._slots.put(slot)
        self._reference_slots: queue.Queue[int] = queue.Queue()
        for slot in range(children, 2 * children):
            self._reference_slots.put(slot)
        self._lock = threading.RLock()
        self._prepared: OrderedDict[str, Prepared] = OrderedDict()
        self._submissions: Zygote | None = None
        self._references: Zygote | None = None
        self._checker: CheckerClient | None = None
        self._versions: dict[str, str] = {}
        self._background = ThreadPoolExecutor(max_workers=2 * children + 2, thread_name_prefix="judge")
        self.tier = TIER

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._background.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            for prepared in self._prepared.values():
                prepared.close()
            self._prepared.clear()
            for process in (self._submissions, self._references, self._checker):
                if process is not None:
                    process.close()
            self._submissions = self._references = self._checker = None

    def start(self) -> None:
        """Start the processes; returns when torch is loaded in all of them. `judge` does it by itself."""
        with self._lock:
            if self._submissions is None:
                self._submissions = Zygote("submission")
            if self._references is None:
                self._references = Zygote("reference")
            if self._checker is None or not self._checker.alive:
                if self._checker is not None:
                    self._checker.close()
                self._forget()
                self._checker = CheckerClient()
                self._versions = {**self._checker.call("hello")[0], "judge": VERSION}
            self._submissions.wait_ready()
            self._references.wait_ready()

    def _forget(self) -> None:
        """Drop all problems: their answers were in a checker that is gone."""
        for prepared in self._prepared.values():
            prepared.close()
        self._prepared.clear()

    def _call(self, do: str, blobs: list[bytes] | None = None, **request: Any) -> tuple[dict[str, Any], list[bytes]]:
        checker = self._checker
        if checker is None:
            raise JudgeError("the judge is closed")
        return checker.call(do, blobs, **request)

    def warm(self, package: Package) -> None:
        """Prepare a problem, its known mistakes included, so that the next submission to it is quick."""
        prepared = self._prepare(package)
        self._learn_mistakes(prepared)

    def _prepare(self, package: Package) -> Prepared:
        with self._lock:
            self.start()
            prepared = self._prepared.get(package.version)
            if prepared is not None:
                self._prepared.move_to_end(package.version)
                return prepared
            prepared = self._make_ready(package)
            self._prepared[package.version] = prepared
            while len(self._prepared) > self._keep:
                self._prepared.popitem(last=False)[1].close()
            return prepared

    def _make_ready(self, package: Package) -> Prepared:
        assert self._submissions is not None
        assert self._references is not None
        header, static = self._call("prepare", folder=str(package.folder))
        if header["version"] != package.version:
            raise JudgeError(f"problem {package.id} has changed on disk since it was loaded: load it again")
        try:
            stage = self._submissions.stage(scene_of(package, stubbed=True))
            reference = self._references.stage(scene_of(package, stubbed=False))
        except SandboxError as error:
            raise JudgeError(f"problem {package.id} cannot be staged: {error}") from error
        prepared = Prepared(package, stage, reference, static)
        run = self._run_trusted(prepared, package.solution, static)
        if not all(run.replies):
            prepared.close()
            raise JudgeError(f"problem {package.id}: the reference does not answer all its cases")
        self._call("learn", run.replies, version=package.version, name="")
        return prepared

    def _learn_mistakes(self, prepared: Prepared) -> None:
        """Run every known mistake on the seed-independent cases, once for each problem version."""
        with prepared.lock:
            if prepared.mistakes_known:
                return
            package = prepared.package
            for name, run in self._run_all_mistakes(prepared, prepared.static_frames):
                self._call("learn", run.replies, version=package.version, name=name)
            prepared.mistakes_known = True

    def _run_all_mistakes(self, prepared: Prepared, case_frames: list[bytes]) -> list[tuple[str, Run]]:
        known = [w for w in prepared.package.wrong.values() if w.verdict != "time_limit"]
        jobs = [
            (w.name, self._background.submit(self._run_trusted, prepared, w.source, case_frames)) for w in known
        ]
        return [(name, job.result()) for name, job in jobs]

    def _run_trusted(self, prepared: Prepared, source: str, case_frames: list[bytes]) -> Run:
        """Run the reference or a known mistake in a child of its own, over the whole tree."""
        slot = self._reference_slots.get()
        try:
            child = prepared.reference.spawn(_limits(prepared.package), slot)
            try:
                replies = [b""] * len(case_frames)
                if isinstance(child.exchange(load_frame(prepared.package, source), LOAD_MS), Ending):
                    return Run(replies)
                for i, frame in enumerate(case_frames):
                    answer = child.exchange(frame)
                    if isinstance(answer, Ending):
                        break
                    replies[i] = answer.data
                return Run(replies)
            finally:
                child.close()
        finally:
            self._reference_slots.put(slot)

    def judge(
        self,
        package: Package,
        source: bytes,
        seed: bytes,
        *,
        which: Which = "all",
        on_event: OnEvent | None = None,
    ) -> Verdict:
        """Judge one submission. Blocks; may be called from several threads.

        `which`: "all" cases, the "public" ones only (a Run), or all but the random ones ("fixed").
        `source`: as it arrived. `seed`: 16 bytes that decide the random cases and the order of all. `on_event` is
        called with the events of DESIGN ("start", "case", "verdict") as they happen, from a thread of the judge.
        Raises JudgeError for faults that are not the submission's; the caller makes them `system_error`.
        """
        emit = on_event or (lambda event: None)
        try:
            text = decode_source(source, package.limits.source_kb * 1024)
        except SourceError as error:
            # Not run at all: nothing of it is worth a process. The total is that of a full run.
            return self._refused(package, error.message, which, emit)
        try:
            prepared = self._prepare(package)
            return Sitting(self, prepared, text, seed, which, emit).run()
        except (SandboxError, rpc.ConnectionLost) as error:
            raise JudgeError(str(error)) from error

    def _refused(self, package: Package, message: Message, which: Which, emit: OnEvent) -> Verdict:
        try:
            prepared = self._prepare(package)
            header, _ = self._open(prepared, b"", which, lines=0)
        except (SandboxError, rpc.ConnectionLost) as error:
            raise JudgeError(str(error)) from error
        cases = [_case(self._end(header, i, Status.NOT_RUN, None)) for i in range(header["n"])]
        self._call("close", sitting=header["sitting"])
        verdict = self._verdict(package, Status.COMPILE_ERROR, cases, 0.0, message)
        emit({"type": "start", "total": len(cases), "tier": self.tier})
        emit({"type": "verdict", "verdict": verdict.to_json()})
        return verdict

    def _open(
        self, prepared: Prepared, seed: bytes, which: Which, lines: int
    ) -> tuple[dict[str, Any], list[bytes]]:
        return self._call(
            "open", version=prepared.package.version, seed=seed.hex(), which=which, lines=lines
        )

    def _end(self, header: dict[str, Any], index: int, status: Status, message: Message | None) -> dict[str, Any]:
        data = message.to_json() if message else None
        answer, _ = self._call("end", sitting=header["sitting"], index=index, status=str(status), message=data)
        case: dict[str, Any] = answer["case"]
        return case

    def _verdict(
        self, package: Package, status: Status, cases: list[CaseResult], cpu_ms: float, message: Message | None
    ) -> Verdict:
        return Verdict(
            problem=package.id,
            version=package.version,
            status=status,
            passed=sum(c.status is Status.ACCEPTED for c in cases),
            total=len(cases),
            time_ms=round(cpu_ms),
            tier=self.tier,
            kernels=f"fake-{package.info.kernels}",
            versions=dict(self._versions),
            # Sorted, so that the order in which hidden cases ran says nothing: public ones first.
            cases=sorted(cases, key=lambda c: (c.group != PUBLIC, str(c.status) != "accepted", str(c.message))),
            message=message,
        )


class Sitting:
    """One submission on its way through the judge.

    Invariants: `cases[i]` is the result of case i, in the order of the sitting; the child runs one case at a time;
    checking lags behind it on a thread of its own, so that neither waits for the other.
    """

    def __init__(
        self, judge: Judge, prepared: Prepared, text: str, seed: bytes, which: Which, emit: OnEvent
    ) -> None:
        self.judge = judge
        self.prepared = prepared
        self.package = prepared.package
        self.text = text
        self.emit = emit
        self.header, self.frames = judge._open(prepared, seed, which, text.count("\n") + 1)
        self.sitting = self.header["sitting"]
        self.n: int = self.header["n"]
        self.cases: dict[int, CaseResult] = {}
        self.cpu_ms = 0.0
        self.message: Message | None = None
        self.drawn_answers: Future[None] | None = None

    def run(self) -> Verdict:
        self.emit({"type": "start", "total": self.n, "tier": self.judge.tier})
        slot = self.judge._slots.get()
        try:
            if self.header["drawn"]:
                self.drawn_answers = self.judge._background.submit(self._learn_drawn, "", self.package.solution)
            child = self.prepared.stage.spawn(_limits(self.package), slot)
            try:
                status = self._load(child)
                if status is None:
                    self._run_cases(child)
                    status = overall([c.status for c in self.cases.values()])
                verdict = self._finish(child, slot, status)
            finally:
                child.close()
        finally:
            self.judge._slots.put(slot)
            if self.drawn_answers is not None:
                self.drawn_answers.result()
            self.judge._call("close", sitting=self.sitting)
        self.emit({"type": "verdict", "verdict": verdict.to_json()})
        return verdict

    def _learn_drawn(self, name: str, source: str) -> None:
        drawn = [self.frames[i] for i in self.header["drawn"]]
        run = self.judge._run_trusted(self.prepared, source, drawn)
        if not name and not all(run.replies):
            raise JudgeError(f"problem {self.package.id}: the reference does not answer a random case")
        self.judge._call("learn_drawn", run.replies, sitting=self.sitting, name=name)

    def _load(self, child: Child) -> Status | None:
        """Load the submission. None if all is well, else the verdict's status, with `message` set."""
        answer = child.exchange(load_frame(self.package, self.text), LOAD_MS)
        if isinstance(answer, Ending):
            self.message = answer.message
            status = answer.status
        else:
            self.cpu_ms += answer.cpu_ms
            reply, _ = self.judge._call("loading", [answer.data], sitting=self.sitting)
            if reply["status"] is None:
                return None
            self.message = Message.from_json(reply["message"])
            status = Status(reply["status"])
        for i in range(self.n):
            self._record(i, self.judge._end(self.header, i, Status.NOT_RUN, None))
        return status

    def _run_cases(self, child: Child) -> None:
        with ThreadPoolExecutor(1) as checking:
            jobs = []
            for i in range(self.n):
                answer = child.exchange(self.frames[i])
                jobs.append(checking.submit(self._check, i, answer))
                if isinstance(answer, Ending):
                    self.message = answer.message
                    jobs += [checking.submit(self._check, k, None) for k in range(i + 1, self.n)]
                    break
                self.cpu_ms += answer.cpu_ms
            for job in jobs:
                job.result()

    def _check(self, index: int, answer: Reply | Ending | None) -> None:
        if isinstance(answer, Reply):
            if self.drawn_answers is not None and index in self.header["drawn"]:
                self.drawn_answers.result()
            case = self._ask_checker(index, answer)
        elif isinstance(answer, Ending):
            case = self.judge._end(self.header, index, answer.status, answer.message)
        else:
            case = self.judge._end(self.header, index, Status.NOT_RUN, None)
        self._record(index, case)

    def _ask_checker(self, index: int, answer: Reply) -> dict[str, Any]:
        reply, _ = self.judge._call(
            "check", [answer.data, answer.output], sitting=self.sitting, index=index, cpu_ms=answer.cpu_ms
        )
        case: dict[str, Any] = reply["case"]
        return case

    def _record(self, index: int, case: dict[str, Any]) -> None:
        self.cases[index] = _case(case)
        self.emit({"type": "case", "done": len(self.cases), "total": self.n, "case": case})

    def _finish(self, child: Child, slot: int, status: Status) -> Verdict:
        cases = [self.cases[i] for i in range(self.n)]
        verdict = self.judge._verdict(self.package, status, cases, self.cpu_ms, self.message)
        if status in (Status.ACCEPTED, Status.COMPILE_ERROR) or any(
            c.status is Status.NOT_RUN for c in cases[:1]
        ):
            return verdict
        self._teach(child, slot)
        if self.package.wrong:
            self.judge._learn_mistakes(self.prepared)
            if self.header["drawn"]:
                possible, _ = self.judge._call("possible_mistakes", sitting=self.sitting)
                jobs = [
                    self.judge._background.submit(self._learn_drawn, name, self.package.wrong[name].source)
                    for name in possible["names"]
                ]
                for job in jobs:
                    job.result()
        reply, _ = self.judge._call("finish", sitting=self.sitting)
        verdict.diagnosis, verdict.counterexample = reply["diagnosis"], reply["counterexample"]
        return verdict

    def _teach(self, child: Child, slot: int) -> None:
        """Run the teach cases, smallest first, until one fails: that one may be shown whole."""
        fresh: Child | None = None
        try:
            if child.ended is not None:
                child.close()
                child = fresh = self.prepared.stage.spawn(_limits(self.package), slot)
                if isinstance(child.exchange(load_frame(self.package, self.text), LOAD_MS), Ending):
                    return
            for i in range(self.n, len(self.frames)):
                answer = child.exchange(self.frames[i], TEACH_MS)
                if isinstance(answer, Ending):
                    self.judge._end(self.header, i, answer.status, answer.message)
                    return
                case = self._ask_checker(i, answer)
                if case["status"] != Status.ACCEPTED:
                    return
        finally:
            if fresh is not None:
                fresh.close()


def scene_of(package: Package, *, stubbed: bool) -> Scene:
    """What a child of this problem sees: nothing but torch unless the package needs the tree or the fakes."""
    paths: list[str] = []
    modules: list[str] = []
    if "tree" in package.info.needs:
        paths.append(str(tree_of(package, stubbed=stubbed)))
        if package.target:
            modules.append(package.target.partition(":")[0].removesuffix(".py").replace("/", "."))
    if "fakes" in package.info.needs:
        paths.append(str(FAKES))
    driver = package.text("driver.py") if "driver.py" in package.files else ""
    return Scene(tuple(paths), tuple(modules), driver)


def load_frame(package: Package, source: str) -> bytes:
    """The frame that hands a program to a child."""
    return frames.encode(
        "load",
        {
            "source": source,
            "entry": package.entry,
            "arity": len(package.parameters),
            "signature": package.info.signature,
            "kind": package.kind,
            "target": package.target,
        },
    )


def _limits(package: Package) -> ChildLimits:
    limits = package.limits
    return ChildLimits(limits.case_ms, limits.total_ms, limits.memory_mb, limits.output_kb, limits.reply_kb)


def _case(data: dict[str, Any]) -> CaseResult:
    message = Message.from_json(data["message"]) if data["message"] else None
    result = CaseResult(data["name"], data["group"], Status(data["status"]), data["time_ms"], message)
    if data["group"] == PUBLIC:
        result.got, result.output = data["got"], data["output"]
        result.mismatches = [Mismatch(m["code"], m["field"], m["params"]) for m in data["mismatches"]]
    return result



