"""The worker: takes submissions from the store, has them judged, and writes down what came of it.

`python -m judge.worker` runs until SIGTERM or SIGINT, which hands back what it holds. Whatever else ends it, its
leases run out and another worker (or the next one) judges those submissions again.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import structlog
from pydantic import Field

from judge.core.verdict import Json
from judge.judge import Judge, JudgeError
from judge.packages import Package, load_packages
from judge.store import Claim, Queue, Store, StoreSettings
from judge.store.bell import Ear, bell_folder
from judge.store.queue import HEARTBEAT_S, LEASE_S, system_error

POLL_S = 1.0
KILL_BEFORE_S = 3.0  # a run ends this long before its lease does, by the worker's own clock
GRACE_S = 2.0  # what a polite shutdown leaves to submissions that are nearly done
PROGRESS_S = 0.02  # cases that end within this time are written together

log = structlog.get_logger("judge.worker")


class WorkerSettings(StoreSettings):
    """Settings of one worker process."""

    worker_slots: int = Field(2, ge=1, le=64, description="Submissions that one worker judges at the same time.")


class Progress:
    """Writes the cases of one run to the store from a thread of its own, so that watching costs the run nothing.

    Invariants
    - cases are written in the order in which they came, each once.
    - after `close()` nothing more is written.
    """

    def __init__(self, queue: Queue, claim: Claim) -> None:
        self._queue, self._claim = queue, claim
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
                self._queue.progress(self._claim, self._next, cases)
            except Exception:  # noqa: BLE001 - a view that lags is no reason to lose a verdict
                log.warning("progress_not_written", submission=self._claim.submission, exc_info=True)
            self._next += len(cases)
            time.sleep(PROGRESS_S)


@dataclass
class Run:
    """A claim that is being judged. `deadline` is on the monotonic clock: past it the lease can no longer be trusted."""

    claim: Claim
    deadline: float
    lost: threading.Event = field(default_factory=threading.Event)


class Worker:
    """Claims, judges, finishes; up to `slots` submissions at a time.

    Invariants
    - a submission that has crashed a worker before runs with nothing beside it.
    - each run in `_runs` has a lease that the heartbeat renews; one whose lease is lost is cancelled and its result
      thrown away (the store would refuse it anyway).
    - the heartbeat may wait for the database; the watchdog, which looks at the clock only, never does.
    """

    def __init__(self, store: Store, judge: Judge, packages: dict[int, Package], *, slots: int) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.queue = Queue(store)
        self.judge, self.packages, self.slots = judge, packages, slots
        self._runs: dict[int, Run] = {}
        self._runs_changed = threading.Lock()
        self._stopping = threading.Event()
        self._ear = Ear(bell_folder(store.url))

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
                except Exception:  # noqa: BLE001 - a database that is away comes back; the worker must still be there
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
        threading.Thread(
            target=self._judge, args=(run,), name=f"run-{claim.submission}", daemon=True
        ).start()
        return True

    def _judge(self, run: Run) -> None:
        claim = run.claim
        try:
            while claim.alone and len(self._runs) > 1 and not self._stopping.wait(0.05):
                pass
            verdict = self._verdict(run)
            if run.lost.is_set() or verdict is None:
                log.warning("run_abandoned", submission=claim.submission, attempt=claim.attempt)
            elif self._finish(claim, verdict):
                log.info("judged", submission=claim.submission, problem=claim.problem, status=verdict["status"])
        finally:
            with self._runs_changed:
                self._runs.pop(claim.submission, None)
            self._ear.wake()
