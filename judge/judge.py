"""The judge: takes a submission through the sandbox and past the checker, and says what came of it.

One `Judge` holds two zygotes (one for submissions, one for references), one checker process, and the stages of the
problems in use. The thread that calls `judge` becomes that submission's coordinator (`coordinator.Coordinator`).
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from judge import rpc, selftest
from judge.checker import CheckerClient
from judge.coordinator import Coordinator
from judge.core.case import PUBLIC
from judge.core.source import SourceError, decode_source
from judge.core.status import Status
from judge.core.verdict import CaseResult, Message, Verdict
from judge.dialogue import converse
from judge.packages import Package, PackageError
from judge.prepared import KEEP_STAGES_MB, Prepared, Shelf
from judge.references import References
from judge.sandbox import medium
from judge.sandbox.client import Stage, Zygote
from judge.sandbox.local import LocalChild, LocalStage, LocalZygote
from judge.sandbox.process import Child, Ending, Reply, SandboxError
from judge.sitting import Which
from judge.staging import child_limits, scene_of

VERSION = "0.1.0"
MOST_KEPT = 2  # children that have a problem's reference loaded
log = logging.getLogger(__name__)
OnEvent = Callable[[dict[str, Any]], None]


class JudgeError(RuntimeError):
    """A fault of the judge or of a problem package; never the submission's doing."""


class PackageChanged(JudgeError):
    """A problem's files are other ones than when it was loaded."""


class NoTier(JudgeError):
    """No isolation tier that may be used works on this machine; `python -m judge.selftest` says what to change."""


class Judge:
    """Judges submissions, several at once.

    Invariants: at most `children` submissions, and as many references, run at a time. Who starts or ends processes, or
    prepares a problem, holds `_preparing`, for seconds; who finds a problem on the shelf does not wait for that.
    """

    def __init__(
        self, children: int = 2, keep_mb: float = KEEP_STAGES_MB, tiers: Sequence[str] = selftest.ISOLATING
    ) -> None:
        """`children`: how many submissions run at once. `tiers`: those that may be used, the best first; `local`,
        which isolates nothing, only if it is named here. `keep_mb`: memory for the stages of problems in use; the
        least recently used go first."""
        self._tiers = tuple(tiers)
        self._children = children
        self.running = threading.BoundedSemaphore(children)
        self.running_references = threading.BoundedSemaphore(children)
        self._preparing = threading.RLock()
        self._shelf = Shelf(keep_mb)
        self._submissions: Zygote | LocalZygote | None = None
        self._references: Zygote | LocalZygote | None = None
        self._checker: CheckerClient | None = None
        self._versions: dict[str, str] = {}
        self.background = ThreadPoolExecutor(max_workers=2 * children + 2, thread_name_prefix="judge")
        self.tier = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self.background.shutdown(wait=True, cancel_futures=True)
        with self._preparing:
            self._stop()

    def start(self) -> None:
        """Start the processes; returns when torch is loaded in all of them. `judge` does it by itself."""
        with self._preparing:
            if any(process is not None and not process.alive for process in self._processes):
                log.warning("a process of the judge has died: starting all anew")
                self._stop()
            if None in self._processes:
                self._checker = CheckerClient()
                self._start_zygotes()
                self._versions = {**self._checker.call("hello")[0], "judge": VERSION}

    @property
    def _alive(self) -> bool:
        return all(process is not None and process.alive for process in self._processes)

    @property
    def _processes(self) -> tuple[Zygote | LocalZygote | CheckerClient | None, ...]:
        return self._submissions, self._references, self._checker

    @property
    def references(self) -> Zygote | LocalZygote:
        """The zygote of references; for tools that run one without judging. Raises JudgeError before `start`."""
        if self._references is None:
            raise JudgeError("the judge has not been started")
        return self._references

    def _start_zygotes(self) -> None:
        """Start the zygotes and choose the tier: the first of those allowed that stands up to every attack. Raises
        NoTier if none does."""
        reasons = []
        isolating = [t for t in self._tiers if t in selftest.ISOLATING] if sys.platform == "linux" else []
        if isolating:
            self._references = Zygote("reference")
            self._submissions = Zygote("submission")
            for tier in isolating:
                report = selftest.try_tier(self._submissions, tier)
                if report.ok:
                    self.tier = tier
                    self._references.wait_ready()
                    if tier == "medium":
                        self.running = threading.BoundedSemaphore(medium.children_at_once(self._children))
                    return
                reasons.append(f"{tier}: {report.reason}")
            self._submissions.close()
            self._references.close()
            self._submissions = self._references = None
        if "local" not in self._tiers:
            raise NoTier("; ".join(reasons) or f"{', '.join(self._tiers)} need Linux; this is {sys.platform}")
        self.tier = "local"
        self._submissions = LocalZygote("submission", reuse=False)
        self._references = LocalZygote("reference", reuse=True)
        # One at a time: a second process starts longer than the first runs.
        self.running_references = threading.BoundedSemaphore(1)

    def _stop(self) -> None:
        """End all processes and drop all problems: their answers were in a checker that is gone."""
        self._shelf.clear()
        for process in self._processes:
            if process is not None:
                process.close()
        self._submissions = self._references = self._checker = None

    def call(
        self, do: str, blobs: list[bytes] | None = None, **request: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        checker = self._checker
        if checker is None:
            raise JudgeError("the judge is closed")
        return checker.call(do, blobs, **request)

    def warm(self, package: Package) -> None:
        """Prepare a problem, its known mistakes included, so that the next submission to it is quick."""
        with self._using(package) as prepared:
            self.learn_mistakes(prepared)

    @contextlib.contextmanager
    def _using(self, package: Package) -> Iterator[Prepared]:
        """A problem ready to be judged, until this is left. After a fault of ours the next one prepares it anew."""
        prepared = self._shelf.enter(package.version) if self._alive else None
        if prepared is None:
            with self._preparing:
                prepared = self._prepare(package)
                prepared.enter()
        try:
            yield prepared
        except (SandboxError, rpc.ConnectionLost):
            self._shelf.drop(prepared)
            raise
        finally:
            prepared.leave()

    def _prepare(self, package: Package) -> Prepared:
        with self._preparing:
            self.start()
            prepared = self._shelf.held.get(package.version)
            if prepared is None:
                prepared = self._make_ready(package)
                self._shelf.put(prepared)
            return prepared

    def _make_ready(self, package: Package) -> Prepared:
        assert self._submissions is not None
        assert self._references is not None
        try:
            header, static = self.call("prepare", folder=str(package.folder))
        except PackageError as error:
            raise JudgeError(str(error)) from error
        if header["version"] != package.version:
            raise PackageChanged(
                f"problem {package.id} has changed on disk since it was loaded: load it again"
            )
        with contextlib.ExitStack() as opened:
            try:
                stage = self._submissions.stage(scene_of(package, stubbed=True), self.tier)
                opened.callback(stage.close)
                reference = self._references.stage(scene_of(package, stubbed=False), self.tier)
            except SandboxError as error:
                raise JudgeError(f"problem {package.id} cannot be staged: {error}") from error
            references = self._references_of(package, reference)
            opened.callback(references.close)
            prepared = Prepared(package, stage, references, reference.memory_mb, static)
            replies = self.run_reference(prepared, static)
            if not all(replies):
                raise JudgeError(f"problem {package.id}: the reference does not answer all its cases")
            self.call("learn", replies, version=package.version, name="")
            opened.pop_all()
        stage.prefork(child_limits(package))
        return prepared

    def _references_of(self, package: Package, stage: Stage | LocalStage) -> References:
        def retire(child: Child | LocalChild) -> None:
            if isinstance(stage, LocalStage):
                child.close()  # kept, so that the next program need not wait for a process of its own to start
            else:
                self.retire(child, stage)

        return References(
            package,
            stage,
            ask=lambda child, frame: self.run_case(package, child, frame),
            retire=retire,
            most=0 if isinstance(stage, LocalStage) else min(self._children, MOST_KEPT),
        )

    def learn_mistakes(self, prepared: Prepared) -> None:
        """Run every known mistake on the seed-independent cases, once for each problem version."""
        with prepared.lock:
            if prepared.mistakes_known:
                return
            package = prepared.package
            for name, replies in self._run_all_mistakes(prepared, prepared.static_frames):
                self.call("learn", replies, version=package.version, name=name)
            prepared.mistakes_known = True

    def _run_all_mistakes(
        self, prepared: Prepared, case_frames: list[bytes]
    ) -> list[tuple[str, list[bytes]]]:
        known = [w for w in prepared.package.wrong.values() if w.verdict != "time_limit"]
        jobs = [
            (w.name, self.background.submit(self.run_mistake, prepared, w.source, case_frames)) for w in known
        ]
        return [(name, job.result()) for name, job in jobs]

    def run_reference(self, prepared: Prepared, case_frames: list[bytes]) -> list[bytes]:
        """What the reference replies to each case; empty where it gave nothing."""
        with self.running_references:
            return prepared.references.answer(case_frames)

    def run_mistake(self, prepared: Prepared, source: str, case_frames: list[bytes]) -> list[bytes]:
        """What a known mistake replies to each case; empty where it gave nothing."""
        with self.running_references:
            return prepared.references.mistake(source, case_frames)

    def run_case(
        self,
        package: Package,
        child: Child | LocalChild,
        frame: bytes,
        cpu_limit_ms: int | None = None,
        sitting: int | None = None,
    ) -> Reply | Ending:
        """One case in a child; where the problem is about calls, with the conversation that it is. `sitting`: the
        submission's; None for a reference."""
        if not package.has_stub:
            return child.exchange(frame, cpu_limit_ms)
        dialogue: int | None = None

        def step(reply: bytes) -> tuple[bool, bytes]:
            nonlocal dialogue
            blobs = [reply] if dialogue is not None else [reply, frame]
            header, (answer,) = self.call(
                "step", blobs, version=package.version, dialogue=dialogue, sitting=sitting
            )
            dialogue = None if header["over"] else header["dialogue"]
            return header["over"], answer

        try:
            return converse(child, frame, step, cpu_limit_ms)
        except PackageError as error:
            raise JudgeError(str(error)) from error
        finally:
            if dialogue is not None:
                self.call("leave", dialogue=dialogue)

    def retire(self, child: Child | LocalChild, stage: Stage | LocalStage) -> None:
        """End a child and fork a spare for the next, while nobody waits."""

        def work() -> None:
            try:
                try:
                    stage.prefork(child.limits)
                finally:
                    child.close()
            except SandboxError:
                log.exception("a child could not be retired")

        self.background.submit(work)

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
        for last in (False, True):
            try:
                with self._using(package) as prepared:
                    return Coordinator(self, prepared, text, seed, which, emit).run()
            except (SandboxError, rpc.ConnectionLost) as error:
                # A process of ours has died, or was killed. Once more with new ones; no submission can bring this
                # about, since what it sends is data, and its own end is an Ending.
                if last:
                    raise JudgeError(str(error)) from error
                log.warning("judging again after a fault of the judge: %s", error)
        raise AssertionError("unreachable")

    def _refused(self, package: Package, message: Message, which: Which, emit: OnEvent) -> Verdict:
        try:
            with self._using(package) as prepared:
                header, _ = self.open_sitting(prepared, b"", which, lines=0)
                ended = [self.end_case(header, i, Status.NOT_RUN, None) for i in range(header["n"])]
                self.call("close", sitting=header["sitting"])
        except (SandboxError, rpc.ConnectionLost) as error:
            raise JudgeError(str(error)) from error
        cases = [CaseResult.from_json(case) for case in ended]
        verdict = self.verdict(package, Status.COMPILE_ERROR, cases, 0.0, message)
        emit({"type": "start", "total": len(cases), "tier": self.tier})
        emit({"type": "verdict", "verdict": verdict.to_json()})
        return verdict

    def open_sitting(
        self, prepared: Prepared, seed: bytes, which: Which, lines: int
    ) -> tuple[dict[str, Any], list[bytes]]:
        return self.call("open", version=prepared.package.version, seed=seed.hex(), which=which, lines=lines)

    def end_case(
        self, header: dict[str, Any], index: int, status: Status, message: Message | None
    ) -> dict[str, Any]:
        data = message.to_json() if message else None
        answer, _ = self.call("end", sitting=header["sitting"], index=index, status=str(status), message=data)
        case: dict[str, Any] = answer["case"]
        return case

    def verdict(
        self,
        package: Package,
        status: Status,
        cases: list[CaseResult],
        cpu_ms: float,
        message: Message | None,
    ) -> Verdict:
        return Verdict(
            problem=package.id,
            version=package.version,
            status=status,
            passed=sum(c.status is Status.ACCEPTED for c in cases),
            total=len(cases),
            # Hidden cases are a part of it: up to the next 10 ms, as their own times are rounded.
            time_ms=10 * math.ceil(cpu_ms / 10),
            tier=self.tier,
            kernels=f"fake-{package.info.kernels}",
            versions=dict(self._versions),
            # Sorted, so that the order in which hidden cases ran says nothing: public ones first.
            cases=sorted(
                cases, key=lambda c: (c.group != PUBLIC, str(c.status) != "accepted", str(c.message))
            ),
            message=message,
        )
