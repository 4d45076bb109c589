"""The coordinator of one submission: owns its child's pipes and the clock, streams progress, writes the verdict. It
executes nothing of the submission and looks into no reply: that is the checker's part."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from judge.core.status import Status
from judge.core.verdict import CaseResult, Message, Verdict, overall
from judge.sandbox.local import LocalChild
from judge.sandbox.process import Child, Ending, Reply
from judge.sitting import Which
from judge.staging import LOAD_MS, TEACH_MS, child_limits, load_frame

if TYPE_CHECKING:
    from judge.judge import Judge, OnEvent
    from judge.prepared import Prepared


class Coordinator:
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
        self.header, self.frames = judge.open_sitting(prepared, seed, which, text.count("\n") + 1)
        self.sitting = self.header["sitting"]
        self.n: int = self.header["n"]
        self.cases: dict[int, CaseResult] = {}
        self.cpu_ms = 0.0
        self.message: Message | None = None
        self.drawn_answers: Future[None] | None = None

    def run(self) -> Verdict:
        try:
            self.emit({"type": "start", "total": self.n, "tier": self.judge.tier})
            with self.judge.running:
                verdict = self._run()
        finally:
            if self.drawn_answers is not None:
                wait([self.drawn_answers])  # it speaks of the sitting
            self.judge.call("close", sitting=self.sitting)
        self.emit({"type": "verdict", "verdict": verdict.to_json()})
        return verdict

    def _run(self) -> Verdict:
        if self.header["drawn"]:
            self.drawn_answers = self.judge.background.submit(self._learn_answers)
        child = self.prepared.stage.spawn(child_limits(self.package))
        try:
            status = self._load(child)
            if status is None:
                self._run_cases(child)
                child.kill()  # it has seen hidden cases: nothing of it may outlive them
                status = overall([c.status for c in self.cases.values()])
            verdict = self._finish(status)
        finally:
            self.judge.retire(child, self.prepared.stage)
        if self.drawn_answers is not None:
            self.drawn_answers.result()
        return verdict

    def _drawn(self) -> list[bytes]:
        return [self.frames[i] for i in self.header["drawn"]]

    def _learn_answers(self) -> None:
        replies = self.judge.run_reference(self.prepared, self._drawn())
        if not all(replies):
            raise RuntimeError(f"problem {self.package.id}: the reference does not answer a random case")
        self.judge.call("learn_drawn", replies, sitting=self.sitting, name="")

    def _learn_mistake(self, name: str) -> None:
        source = self.package.wrong[name].source
        replies = self.judge.run_mistake(self.prepared, source, self._drawn())
        self.judge.call("learn_drawn", replies, sitting=self.sitting, name=name)

    def _load(self, child: Child | LocalChild) -> Status | None:
        """Load the submission. None if all is well, else the verdict's status, with `message` set."""
        answer = child.exchange(load_frame(self.package, self.text), LOAD_MS)
        if isinstance(answer, Ending):
            self.message = answer.message
            status = answer.status
        else:
            self.cpu_ms += answer.cpu_ms
            reply, _ = self.judge.call("loading", [answer.data], sitting=self.sitting)
            if reply["status"] is None:
                return None
            self.message = Message.from_json(reply["message"])
            status = Status(reply["status"])
        for i in range(self.n):
            self._record(i, self.judge.end_case(self.header, i, Status.NOT_RUN, None))
        return status

    def _run_cases(self, child: Child | LocalChild) -> None:
        with ThreadPoolExecutor(1) as checking:
            jobs: list[Future[None]] = []
            for i in range(self.n):
                if any(job.done() and job.exception() for job in jobs):
                    break  # such as `on_event` ending a run that nobody waits for any more: raised below
                answer = self.judge.run_case(self.package, child, self.frames[i], sitting=self.sitting)
                jobs.append(checking.submit(self._check, i, answer))
                if isinstance(answer, Ending):
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
            case = self.judge.end_case(self.header, index, answer.status, answer.message)
            self.message = Message.from_json(case["message"])  # of a hidden case: what may be told
        else:
            case = self.judge.end_case(self.header, index, Status.NOT_RUN, None)
        self._record(index, case)

    def _ask_checker(self, index: int, answer: Reply) -> dict[str, Any]:
        reply, _ = self.judge.call(
            "check", [answer.data, answer.output], sitting=self.sitting, index=index, cpu_ms=answer.cpu_ms
        )
        case: dict[str, Any] = reply["case"]
        return case

    def _record(self, index: int, case: dict[str, Any]) -> None:
        self.cases[index] = CaseResult.from_json(case)
        self.emit({"type": "case", "done": len(self.cases), "total": self.n, "case": case})

    def _finish(self, status: Status) -> Verdict:
        cases = [self.cases[i] for i in range(self.n)]
        verdict = self.judge.verdict(self.package, status, cases, self.cpu_ms, self.message)
        if status in (Status.ACCEPTED, Status.COMPILE_ERROR) or any(
            c.status is Status.NOT_RUN for c in cases[:1]
        ):
            return verdict
        if self.message is None or self.message.code != "wall_limit":  # a sleeper would only sleep again
            self._teach()
        if self.package.wrong:
            self.judge.learn_mistakes(self.prepared)
            if self.header["drawn"]:
                possible, _ = self.judge.call("possible_mistakes", sitting=self.sitting)
                jobs = [self.judge.background.submit(self._learn_mistake, name) for name in possible["names"]]
                for job in jobs:
                    job.result()
        reply, _ = self.judge.call("finish", sitting=self.sitting)
        verdict.diagnosis, verdict.counterexample = reply["diagnosis"], reply["counterexample"]
        return verdict

    def _teach(self) -> None:
        """Run the teach cases, smallest first, until one fails: that one may be shown whole. In a child of their own,
        since one that has seen hidden cases could put them into what is shown."""
        child = self.prepared.stage.spawn(child_limits(self.package))
        try:
            if isinstance(child.exchange(load_frame(self.package, self.text), LOAD_MS), Ending):
                return
            for i in range(self.n, len(self.frames)):
                answer = self.judge.run_case(self.package, child, self.frames[i], TEACH_MS, self.sitting)
                if isinstance(answer, Ending):
                    self.judge.end_case(self.header, i, answer.status, answer.message)
                    return
                case = self._ask_checker(i, answer)
                if case["status"] != Status.ACCEPTED:
                    return
        finally:
            self.judge.retire(child, self.prepared.stage)
