"""Tier `local`: your own code on your own machine, where no stronger tier works. A fresh process for each submission, with
limits, and no isolation: only the terminal command and a single-user server on loopback may use it.

It has the faces of `client.Zygote`, `client.Stage` and `process.Child`, built on pipes and threads alone, so that it
also runs on macOS and Windows. A warm spare hides the seconds that loading torch takes.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

from judge.core.status import Status
from judge.sandbox import linux
from judge.sandbox.client import ROOT, Scene
from judge.sandbox.process import ChildLimits, Ending, Reply, SandboxError, ending

START_DEADLINE_S = 120.0
POLL_S = 0.02
MOST_REPLIES = 4  # read ahead of the judge; a program that sends more has to wait


class LocalZygote:
    """Stands where a zygote stands; there is nothing to fork from. `reuse`: its stages keep one process for one program
    after another, which is right for references and never done with submissions."""

    alive = True

    def __init__(self, name: str, reuse: bool) -> None:
        self.name = name
        self.reuse = reuse

    def wait_ready(self) -> None:
        """Ready at once."""

    def stage(self, scene: Scene, tier: str = "local") -> LocalStage:
        return LocalStage(scene, self.reuse)

    def close(self) -> None:
        """Nothing is held."""


class LocalStage:
    """One version of a problem, ready to start processes. Invariant: `_spares` wait for a program that nobody has sent."""

    early_spare = True  # the next process starts while a program runs: a wrong one soon needs it, for the case it is shown

    def __init__(self, scene: Scene, reuse: bool) -> None:
        self.scene = scene
        self.reuse = reuse
        self.memory_mb = 300.0 if reuse else 600.0  # a process with torch each; about one, or one and a spare
        self._lock = threading.Lock()
        self._spares: list[LocalChild] = []
        self._closed = False

    def spawn(self, limits: ChildLimits) -> LocalChild:
        with self._lock:
            spare = self._spares.pop() if self._spares else None
        return spare or self.make(limits)

    def make(self, limits: ChildLimits) -> LocalChild:
        """A new process."""
        return LocalChild(self, limits)

    def prefork(self, limits: ChildLimits) -> None:
        """Make a spare, if there is none."""
        with self._lock:
            if self._spares or self._closed:
                return
        self.keep(self.make(limits))

    def keep(self, child: LocalChild) -> None:
        """Keep a child for the next program, or end it if the stage is closed."""
        with self._lock:
            if not self._closed:
                self._spares.append(child)
                return
        child.end()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spares, self._spares = self._spares, []
        for spare in spares:
            spare.end()


class LocalChild:
    """One process. Invariant: after an Ending no further exchange is possible."""

    program = "local_child.py"

    def __init__(self, stage: LocalStage, limits: ChildLimits) -> None:
        self.limits = limits
        self.ended: Ending | None = None
        self._stage = stage
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name(self.program)), json.dumps(self.options())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
        )
        self._requests: queue.Queue[bytes | None] = queue.Queue()
        self._replies: queue.Queue[bytes | None] = queue.Queue(MOST_REPLIES)
        self._over = threading.Event()
        self._printed = bytearray()
        self._printed_bytes = 0
        self._threads = [
            threading.Thread(target=self._write_requests, args=(self._process.stdin,), daemon=True),
            threading.Thread(target=self._read_replies, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_output, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self._ready = False
        self._begin_anew()
        self._lock = threading.Lock()

    def _begin_anew(self) -> None:
        """A program to come has the limits for itself."""
        self._started_at = 0.0
        self._used_ms = 0.0

    def renew(self) -> bool:
        """As `process.Child.renew`. A stage of references keeps its process itself, in `close`."""
        self._begin_anew()
        return True

    def environment(self) -> dict[str, str]:
        """What Python needs to start, and nothing of ours."""
        keep = ("SYSTEMROOT", "TEMP", "TMP", "PATH", "HOME") if sys.platform == "win32" else ()
        return {name: os.environ[name] for name in keep if name in os.environ}

    def options(self) -> dict[str, object]:
        """What the program is told at its start."""
        scene = self._stage.scene
        limits, more = self.limits, 60 if self._stage.reuse else 20
        return {
            "root": str(ROOT),
            "scene": {"paths": scene.paths, "modules": scene.modules, "driver": scene.driver},
            "memory": limits.memory_mb << 20,
            "cpu_s": limits.total_ms // 1000 + more,
        }

    def _write_requests(self, stream: IO[bytes]) -> None:
        """On a thread of its own: nothing makes a program read, and a full pipe holds whoever writes."""
        while (data := self._requests.get()) is not None:
            try:
                stream.write(data)
                stream.flush()
            except (
                OSError,
                ValueError,
            ):  # its end, or the end of what it reads from: its replies will say more
                return

    def _read_replies(self, stream: IO[bytes]) -> None:
        while True:
            head = stream.read(4)
            size = int.from_bytes(head, "little")
            if len(head) < 4:
                self._deliver(None)
                return
            if size > self.limits.reply_kb * 1024:
                self._deliver(head)
                return
            self._deliver(head + stream.read(size))

    def _deliver(self, reply: bytes | None) -> None:
        while not self._over.is_set():
            try:
                self._replies.put(reply, timeout=0.2)
            except queue.Full:
                continue
            return

    def _read_output(self, stream: IO[bytes]) -> None:
        cap = self.limits.output_kb * 1024
        while chunk := os.read(stream.fileno(), 65536):
            with self._lock:
                self._printed_bytes += len(chunk)
                if self._printed_bytes <= cap:
                    self._printed += chunk

    def cpu_ms(self) -> float:
        """CPU time of the process so far; wall time where the system cannot tell."""
        if sys.platform == "linux":
            try:
                return time.clock_gettime(linux.cpu_clock(self._process.pid)) * 1000
            except OSError:
                return 0.0
        return time.monotonic() * 1000

    def forgive(self, seconds: float) -> None:
        """Do not count on the wall what the child has just waited for us."""
        self._started_at += seconds

    def exchange(self, frame: bytes, cpu_limit_ms: int | None = None) -> Reply | Ending:
        """Send one frame, wait for one, as `process.Child.exchange`."""
        if self.ended is not None:
            return self.ended
        if not self._ready:
            self._wait_ready()
        self._started_at = self._started_at or time.monotonic()
        result = self._exchange(frame, cpu_limit_ms or self.limits.case_ms)
        if isinstance(result, Ending):
            self.ended = result
            self.kill()
        return result

    def _wait_ready(self) -> None:
        if self._said(START_DEADLINE_S) is None:
            raise SandboxError(f"a process did not start: {self.printed()}")
        self._ready = True
        self.forget_output()
        if self._stage.early_spare and not self._stage.reuse:
            self._stage.prefork(self.limits)

    def _said(self, deadline_s: float) -> bytes | None:
        """The process's next word; None if it has ended. Raises SandboxError at the deadline."""
        try:
            return self._replies.get(timeout=deadline_s)
        except queue.Empty:
            raise SandboxError(
                f"a process said nothing within {deadline_s:.0f} s: {self.printed()}"
            ) from None

    def _tell(self, word: bytes) -> None:
        self._requests.put(word)

    def printed(self) -> str:
        """The end of what has been printed since it was last forgotten."""
        with self._lock:
            return bytes(self._printed).decode("utf-8", "replace")[-2000:]

    def forget_output(self) -> None:
        """Begin with empty output."""
        with self._lock:
            self._printed.clear()
            self._printed_bytes = 0

    def _exchange(self, frame: bytes, cpu_limit_ms: int) -> Reply | Ending:
        if not self._replies.empty():
            return ending(Status.RUNTIME_ERROR, "unsolicited_bytes")
        before = self.cpu_ms()
        end = min(
            time.monotonic() + self.limits.wall_ms / 1000, self._started_at + self.limits.total_wall_ms / 1000
        )
        self._requests.put(frame)
        while True:
            try:
                reply = self._replies.get(timeout=POLL_S)
            except queue.Empty:
                over = self._over_limit(before, cpu_limit_ms, end)
                if over is not None:
                    return over
                continue
            return self._finish(reply, before, cpu_limit_ms)

    def _finish(self, reply: bytes | None, before: float, cpu_limit_ms: int) -> Reply | Ending:
        if reply is None:
            return self._from_exit()
        size = int.from_bytes(reply[:4], "little")
        if size > self.limits.reply_kb * 1024:
            return ending(
                Status.RUNTIME_ERROR, "reply_too_large", size=size, limit=self.limits.reply_kb * 1024
            )
        if len(reply) < 4 + size:
            return ending(Status.RUNTIME_ERROR, "broken_reply")
        over = self._over_limit(before, cpu_limit_ms, float("inf"))
        if over is not None:
            return over
        used = max(0.0, self.cpu_ms() - before)
        self._used_ms += used
        with self._lock:
            output = bytes(self._printed)
            self._printed.clear()
        return Reply(reply[4:], used, output)

    def _over_limit(self, before: float, cpu_limit_ms: int, end: float) -> Ending | None:
        used = self.cpu_ms() - before
        if self._printed_bytes > self.limits.output_kb * 1024:
            return ending(Status.OUTPUT_LIMIT, "output_limit", limit_kb=self.limits.output_kb)
        if used > cpu_limit_ms:
            return ending(Status.TIME_LIMIT, "cpu_limit", used_ms=round(used), limit_ms=cpu_limit_ms)
        total = self._used_ms + used
        if total > self.limits.total_ms:
            return ending(
                Status.TIME_LIMIT, "total_cpu_limit", used_ms=round(total), limit_ms=self.limits.total_ms
            )
        if time.monotonic() > end:
            waited = (time.monotonic() - self._started_at) * 1000
            limit = self.limits.total_wall_ms if waited > self.limits.total_wall_ms else self.limits.wall_ms
            return ending(Status.TIME_LIMIT, "wall_limit", used_ms=round(max(0.0, used)), limit_ms=limit)
        return None

    def _from_exit(self) -> Ending:
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return ending(Status.RUNTIME_ERROR, "broken_reply")
        if code >= 0:
            return ending(Status.RUNTIME_ERROR, "ended_early", exit=code)
        return ending(Status.RUNTIME_ERROR, "killed_by_signal", signal=f"{-code}")

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()

    def close(self) -> None:
        """End the process, or keep it for the next reference."""
        if self._stage.reuse and self.ended is None:
            self._begin_anew()
            self._stage.keep(self)
        else:
            self.end()

    def end(self) -> None:
        """End the process and wait for it."""
        self.kill()
        self._over.set()
        self._requests.put(None)
        self._process.wait(10)
        for thread in self._threads:
            thread.join(10)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # bytes that the dead process did not take
