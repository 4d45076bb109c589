"""The worker: takes submissions from the store, has them judged, and writes down what came of it.

`python -m judge.worker` runs until SIGTERM or SIGINT, which hands back what it holds. Whatever else ends
it, its leases run out and another worker (or the next one) judges those submissions again.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from judge import logs
from judge.archive import Archive
from judge.core.verdict import Json
from judge.judge import Judge, PackageChanged
from judge.packages import Package, PackageError, load_package, survey
from judge.prepared import KEEP_PROBLEMS
from judge.selftest import ISOLATING
from judge.sitting import Which
from judge.store import Claim, Queue, Store, StoreSettings, presence, reading
from judge.store.bell import Ear, bell_folder
from judge.store.queue import HEARTBEAT_S, LEASE_S, system_error

POLL_S = 1.0
KILL_BEFORE_S = 3.0  # a run ends this long before its lease does, by the worker's own clock
GRACE_S = 2.0  # what a polite shutdown leaves to submissions that are nearly done
PROGRESS_S = 0.02  # cases that end within this time are written together

log = structlog.get_logger("judge.worker")


class WorkerSettings(StoreSettings):
    """Settings of one worker process."""

    worker_slots: int = Field(
        default=2, ge=1, le=64, description="Submissions that one worker judges at the same time."
    )
    allow_local: bool = Field(
        default=False,
        description="Judge without isolation where no tier works. `make serve` sets it: one user, on loopback.",
    )
    prepare_problems: int = Field(
        default=KEEP_PROBLEMS,
        ge=0,
        le=KEEP_PROBLEMS,
        description="Problems that a worker prepares while nobody waits; others are when they are submitted to.",
    )


class Progress:
    """Writes the cases of one run to the store from a thread of its own, so that watching costs the run
    nothing.

    Invariants
    - cases are written in the order in which they came, each once.
    - after `close()` nothing more is written.
    """

    def __init__(self, queue: Queue, claim: Claim, lost: Callable[[], None]) -> None:
        """`lost` is called when a case was refused: the submission was cancelled, or is another worker's by now."""
        self._queue, self._claim, self._lost = queue, claim, lost
        self._pending: list[dict[str, Json]] = []
        self._next = 1
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write, name=f"progress-{claim.submission}", daemon=True)
        self._thread.start()

    def add(self, case: dict[str, Json]) -> None:
        with self._changed:
            self._pending.append(case)
            self._changed.notify()

    def close(self) -> None:
        """Stop writing: the verdict, which has every case, comes now."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed)
                if self._closed:
                    return
                cases, self._pending = self._pending, []
            try:
                if not self._queue.progress(self._claim, self._next, cases):
                    self._lost()
            except SQLAlchemyError:  # a view that lags is no reason to lose a verdict
                log.warning("progress_not_written", submission=self._claim.submission, exc_info=True)
            self._next += len(cases)
            time.sleep(PROGRESS_S)


@dataclass
class Run:
    """A claim that is being judged. `deadline` is on the monotonic clock: past it the lease can no longer
    be trusted."""

    claim: Claim
    deadline: float
    stop: threading.Event = field(default_factory=threading.Event)


class Stopped(Exception):
    """Ends a run from within: its lease is lost, or the worker ends."""


class Worker:
    """Claims, judges, finishes; up to `slots` submissions at a time.

    Invariants
    - a submission that has crashed a worker before runs with nothing beside it.
    - each run in `_runs` has a lease that the heartbeat renews; one whose lease is lost is stopped at its
      next case and its result thrown away (the store would refuse it anyway).
    - the heartbeat may wait for the database; the watchdog, which looks at the clock only, never does.
    """

    def __init__(
        self,
        store: Store,
        judge: Judge,
        packages: dict[int, Package],
        *,
        slots: int,
        archive: Archive | None = None,
    ) -> None:
        """`archive`: where versions of problems are that are not the current one; None: nowhere."""
        self.archive = archive
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self.queue = Queue(store)
        self.judge, self.packages, self.slots = judge, packages, slots
        self._runs: dict[int, Run] = {}
        self._runs_changed = threading.Lock()
        self._stopping = threading.Event()  # take nothing more
        self._stopped = threading.Event()  # everything is handed back
        self._ear = Ear(bell_folder(store.url))

    @property
    def busy(self) -> bool:
        """Whether anything is being judged."""
        return bool(self._runs)

    @property
    def stopping(self) -> bool:
        """Whether it is about to end."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End `run` soon; callable from a signal handler."""
        self._stopping.set()
        self._ear.wake()

    def run(self) -> None:
        """Work until `stop`; then hand back what is not done within the grace time."""
        for task in (self._heartbeat, self._watchdog):
            threading.Thread(target=task, name=task.__name__, daemon=True).start()
        log.info("worker_ready", worker=self.name, tier=self.judge.tier, problems=sorted(self.packages))
        recovered = 0.0
        try:
            while not self._stopping.is_set():
                try:
                    if time.monotonic() - recovered >= HEARTBEAT_S:
                        self.queue.recover()
                        recovered = time.monotonic()
                    if self._has_room() and self._take_one():
                        continue
                except SQLAlchemyError:  # a database that is away comes back; the worker must still be there
                    log.error("store_unreachable", exc_info=True)
                self._ear.wait(POLL_S)
        finally:
            self._hand_back()
            self._ear.close()

    def _has_room(self) -> bool:
        runs = list(self._runs.values())
        return len(runs) < self.slots and not any(r.claim.alone for r in runs)

    def _take_one(self) -> bool:
        asked = time.monotonic()
        claim = self.queue.claim(self.name)
        if claim is None:
            return False
        run = Run(claim, deadline=asked + LEASE_S - KILL_BEFORE_S)
        with self._runs_changed:
            self._runs[claim.submission] = run
        threading.Thread(target=self._judge, args=(run,), name=f"run-{claim.submission}", daemon=True).start()
        return True

    def _judge(self, run: Run) -> None:
        claim = run.claim
        try:
            while claim.alone and len(self._runs) > 1 and not run.stop.wait(0.05):
                pass
            verdict = self._verdict(run)
            if verdict is not None and self._finish(run, verdict):
                log.info("judged", submission=claim.submission, status=verdict["status"])
            else:
                log.warning("run_abandoned", submission=claim.submission, attempt=claim.attempt)
        finally:
            with self._runs_changed:
                self._runs.pop(claim.submission, None)
            self._ear.wake()

    def _package(self, claim: Claim) -> Package | None:
        """The version that the submission was made for, as far as it was kept; else the current one."""
        current = self.packages.get(claim.problem)
        if self.archive is None or (current is not None and current.version == claim.version):
            return current
        try:
            return self.archive.load(claim.version)
        except PackageError as error:
            log.warning("version_not_kept", problem=claim.problem, error=str(error))
            return current

    def _verdict(self, run: Run) -> dict[str, Json] | None:
        """Judge it; None when it was stopped because its lease is lost or the worker ends."""
        claim = run.claim
        package = self._package(claim)
        if package is None:
            return system_error(claim.problem, claim.version, "system_error")
        progress = Progress(self.queue, claim, run.stop.set)

        def on_event(event: dict[str, Any]) -> None:
            if run.stop.is_set():
                raise Stopped
            if event["type"] == "start" and not self.queue.started(claim, event["total"]):
                run.stop.set()
                raise Stopped
            if event["type"] == "case":
                progress.add(event["case"])

        def judge(package: Package) -> dict[str, Json]:
            which: Which = "public" if claim.public_only else "all"
            verdict = self.judge.judge(package, claim.source, claim.seed, which=which, on_event=on_event)
            return verdict.to_json()

        try:
            try:
                return judge(package)
            except PackageChanged:  # its author is at work: what counts is what the files say now
                log.warning("package_reloaded", problem=claim.problem)
                self.packages[claim.problem] = load_package(package.folder)
                if self.archive is not None:
                    self.archive.keep(self.packages[claim.problem])
                return judge(self.packages[claim.problem])
        except Stopped:
            return None
        except Exception:
            if run.stop.is_set():
                return None
            log.error("judge_failed", submission=claim.submission, problem=claim.problem, exc_info=True)
            return system_error(claim.problem, claim.version, "system_error")
        finally:
            progress.close()

    def _finish(self, run: Run, verdict: dict[str, Json]) -> bool:
        """Write the verdict down, trying as long as the lease can be trusted: a database may be away for a
        moment."""
        while not run.stop.is_set():
            try:
                return self.queue.finish(run.claim, verdict)
            except SQLAlchemyError:
                log.error("verdict_not_written", submission=run.claim.submission, exc_info=True)
                run.stop.wait(POLL_S)
        return False

    def _heartbeat(self) -> None:
        self._say_present()
        while not self._stopped.wait(HEARTBEAT_S):
            self._say_present()
            for run in list(self._runs.values()):
                asked = time.monotonic()
                try:
                    if self.queue.heartbeat(run.claim):
                        run.deadline = asked + LEASE_S - KILL_BEFORE_S
                    else:
                        run.stop.set()
                except SQLAlchemyError:
                    log.error("heartbeat_failed", submission=run.claim.submission, exc_info=True)

    def _say_present(self) -> None:
        try:
            with self.queue.store.write() as session:
                presence.say(
                    session, self.name, tier=self.judge.tier, slots=self.slots, running=len(self._runs)
                )
        except SQLAlchemyError:
            log.error("presence_failed", exc_info=True)

    def _watchdog(self) -> None:
        while not self._stopped.wait(0.25):
            now = time.monotonic()
            for run in list(self._runs.values()):
                if now >= run.deadline and not run.stop.is_set():
                    log.error("lease_not_renewed", submission=run.claim.submission)
                    run.stop.set()

    def _hand_back(self) -> None:
        """End politely: a little time for what is nearly done, then the rest goes back to the queue."""
        ends = time.monotonic() + GRACE_S
        while self._runs and time.monotonic() < ends:
            time.sleep(0.02)
        for run in list(self._runs.values()):
            run.stop.set()
            try:
                if self.queue.release(run.claim):
                    log.info("handed_back", submission=run.claim.submission)
            except SQLAlchemyError:
                log.error("not_handed_back", submission=run.claim.submission, exc_info=True)
        self._stopped.set()
        try:
            with self.queue.store.write() as session:
                presence.leave(session, self.name)
        except SQLAlchemyError:
            log.error("presence_failed", exc_info=True)


def main() -> None:
    """Run one worker until it is told to end. With --ready: exit status 0 if one is ready, else 1."""
    if "--ready" in sys.argv:
        sys.exit(0 if is_ready(WorkerSettings().data_dir) else 1)
    settings = WorkerSettings()
    logs.configure(settings.log_format)
    found = survey()
    packages = found.packages
    for error in found.refused:  # the others are judged all the same
        log.error("package_refused", file=str(error.file), line=error.line, reason=error.what)
    tiers = (*ISOLATING, "local") if settings.allow_local else ISOLATING
    with Judge(children=settings.worker_slots, tiers=tiers) as judge:
        store = Store(settings.url)
        archive = Archive(settings.packages)
        for package in packages.values():
            archive.keep(package)
        worker = Worker(store, judge, packages, slots=settings.worker_slots, archive=archive)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        judge.start()
        ready_file(settings.data_dir).write_text(
            json.dumps({"worker": worker.name, "pid": os.getpid(), "tier": judge.tier})
        )
        preparing = (worker, store, settings.prepare_problems)
        threading.Thread(target=_warm, args=preparing, name="warm", daemon=True).start()
        worker.run()
        ready_file(settings.data_dir).unlink(missing_ok=True)
        store.close()


def ready_file(data_dir: Path) -> Path:
    """Where a worker says that it is ready, and with which tier: for a container's health check and for people."""
    return data_dir / "worker.json"


def is_ready(data_dir: Path) -> bool:
    """Whether a worker that said it is ready is alive (on this machine)."""
    try:
        os.kill(json.loads(ready_file(data_dir).read_text())["pid"], 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


def _warm(worker: Worker, store: Store, most: int) -> None:
    """Prepare `most` problems while nobody waits for them, those that were submitted to of late first; one that is broken
    says so when it is submitted to."""
    with store.read() as session:
        recent = reading.recent_problems(session)
    order = [n for n in recent if n in worker.packages]
    order += [n for n in worker.packages if n not in set(order)]
    for number in order[:most]:
        while worker.busy and not worker.stopping:
            time.sleep(0.1)
        if worker.stopping:
            return
        try:
            worker.judge.warm(worker.packages[number])
        except Exception:
            if worker.stopping:  # the judge is being closed under our hands
                return
            log.error("not_warmed", problem=number, exc_info=True)


if __name__ == "__main__":
    main()
