"""One running child as its judge sees it: pipes, clock, limits.

`exchange` sends one frame and waits for one, within limits of CPU time, wall time, memory and output. Whatever goes
wrong comes back as an `Ending`, which says which limit at how much; the child is then gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from judge.core.status import Status
from judge.core.verdict import Message
from judge.sandbox import linux

SETUP_DEADLINE_S = 15.0
REAP_DEADLINE_S = 10.0
POLL_S = 0.01  # how often a running child's clock and memory are read
PIPE_BYTES = 1 << 20
RESERVE_S = 5  # CPU seconds between a child's limit, which the judge's clock keeps, and that of the kernel


class SandboxError(RuntimeError):
    """The sandbox itself failed: never the submission's doing."""


@dataclass(frozen=True)
class ChildLimits:
    """Limits of one child. Times are CPU milliseconds of the child itself."""

    case_ms: int
    total_ms: int
    memory_mb: int
    output_kb: int
    reply_kb: int

    @property
    def wall_ms(self) -> int:
        """How long one case may take on the wall: generous, since the machine may be busy; it only ends sleepers."""
        return self.case_ms * 4 + 3000

    @property
    def total_wall_ms(self) -> int:
        """The same for all cases together."""
        return self.total_ms * 3 + 5000


@dataclass(frozen=True)
class Ending:
    """A child that is gone: what status that is, and what to say."""

    status: Status
    message: Message


@dataclass(frozen=True)
class Reply:
    """A frame (without its length), the CPU time it took, and what was printed meanwhile."""

    data: bytes
    cpu_ms: float
    output: bytes = field(default=b"", repr=False)


class Child:
    """One submission's process, as its judge sees it.

    Invariants: after an Ending no further exchange is possible (`ended` has it); the file descriptors close once,
    in `close`.
    """

    def __init__(self, limits: ChildLimits, requests: int, replies: int, output: int, status: int) -> None:
        self.limits = limits
        self._requests, self._replies, self._output, self._status = requests, replies, output, status
        os.set_blocking(requests, False)
        os.set_blocking(replies, False)
        os.set_blocking(output, False)
        self._reports = bytearray()
        self._guard_gone = False
        self._printed = bytearray()
        self.printed_bytes = 0
        self.ended: Ending | None = None
        self._pidfd = -1
        self._clock = 0
        self._pid = 0
        self._least_bytes = 0
        self._started_at = 0.0
        self._cpu_before = 0.0
        self._look_at = 0.0
        self._closed = False

    def _start(self) -> Ending | None:
        """Wait for the guard's first report: the child's pid. Raises SandboxError if the doors could not be shut."""
        report = self._next_report(SETUP_DEADLINE_S)
        if report is None or "setup_error" in report:
            raise SandboxError(
                f"the sandbox could not be set up: {(report or {}).get('setup_error', 'no report')}"
            )
        self._pid = report["pid"]
        try:
            self._pidfd = os.pidfd_open(self._pid)
        except ProcessLookupError:
            return self._end_from_exit()
        self._clock = linux.cpu_clock(self._pid)
        self._least_bytes = memory_of(self._pid)
        return None

    def _next_report(self, deadline_s: float) -> dict[str, Any] | None:
        """The guard's next line, or None at its end or at the deadline."""
        end = time.monotonic() + deadline_s
        while b"\n" not in self._reports:
            ready, _, _ = select.select([self._status], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._status, 4096) if ready else b""
            if not chunk:
                self._guard_gone = bool(ready)
                return None
            self._reports += chunk
        line, _, rest = self._reports.partition(b"\n")
        self._reports = bytearray(rest)
        report: dict[str, Any] = json.loads(line)
        return report

    def cpu_ms(self) -> float:
        """CPU time of the child so far. 0.0 once it is gone."""
        try:
            return time.clock_gettime(self._clock) * 1000
        except OSError:
            return 0.0

    def renew(self) -> bool:
        """Give all limits anew to the trusted program that runs here. False if the kernel's own limit of CPU time leaves no
        room for that."""
        self._cpu_before, self._started_at = self.cpu_ms(), time.monotonic()
        self.printed_bytes = 0
        return self._cpu_before <= RESERVE_S * 1000

    def forgive(self, seconds: float) -> None:
        """Do not count on the wall what the child has just waited for us."""
        self._started_at += seconds

    def exchange(self, frame: bytes, cpu_limit_ms: int | None = None) -> Reply | Ending:
        """Send one frame, wait for one. `cpu_limit_ms` is this exchange's; by default that of a case."""
        if self.ended is None and self._pid == 0:
            self.ended = self._start()
            self._started_at = time.monotonic()
        if self.ended is not None:
            return self.ended
        result = self._exchange(frame, cpu_limit_ms or self.limits.case_ms)
        if isinstance(result, Ending):
            self.ended = result
            self.kill()
        return result

    def _exchange(self, frame: bytes, cpu_limit_ms: int) -> Reply | Ending:
        if self._readable(self._replies):
            return self._unsolicited()
        cpu_start = self.cpu_ms()
        end = min(
            time.monotonic() + self.limits.wall_ms / 1000, self._started_at + self.limits.total_wall_ms / 1000
        )
        to_send, reply = memoryview(frame), bytearray()
        poll = select.poll()
        poll.register(self._requests, select.POLLOUT)
        for fd in (self._replies, self._output, self._status):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, event in poll.poll(POLL_S * 1000):
                if fd == self._requests:
                    to_send = self._send(to_send)
                    if not to_send:
                        poll.unregister(fd)
                elif fd == self._output:
                    if not self._drain_output():
                        poll.unregister(fd)
                elif fd == self._replies:
                    if not self._take(reply, event):
                        return self._end_from_exit()
                elif not reply:  # the guard reports the end; a reply that is already here goes first
                    return self._end_from_exit()
            if self.printed_bytes > self.limits.output_kb * 1024:
                return ending(Status.OUTPUT_LIMIT, "output_limit", limit_kb=self.limits.output_kb)
            if len(reply) >= 4:
                done = self._complete(reply)
                if isinstance(done, Ending):
                    return done
                if done:
                    break
            # Looking costs as much as a small case: no more often than a program that does not answer is looked at.
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + POLL_S
                over = self._over_limit(cpu_start, cpu_limit_ms, end)
                if over is not None:
                    return over
        self._drain_output()
        if self.printed_bytes > self.limits.output_kb * 1024:
            return ending(Status.OUTPUT_LIMIT, "output_limit", limit_kb=self.limits.output_kb)
        used = self.cpu_ms() - cpu_start
        if used > cpu_limit_ms:
            return self._too_slow(used, cpu_limit_ms)
        output = bytes(self._printed)
        self._printed.clear()
        return Reply(bytes(reply[4:]), max(0.0, used), output)

    def _send(self, data: memoryview) -> memoryview:
        try:
            return data[os.write(self._requests, data[:PIPE_BYTES]) :]
        except BlockingIOError:
            return data
        except BrokenPipeError:  # the child closed its end: its reply, or its end, will say more
            return data[:0]

    def _take(self, reply: bytearray, event: int) -> bool:
        """Read what is there of a reply. False when the child has closed the pipe."""
        chunk = os.read(self._replies, PIPE_BYTES) if event & (select.POLLIN | select.POLLHUP) else b""
        reply += chunk
        return bool(chunk)

    def _complete(self, reply: bytearray) -> bool | Ending:
        """Whether `reply` holds exactly one frame. One that is too long, or is followed by something, ends the run."""
        size = int.from_bytes(reply[:4], "little")
        if size > self.limits.reply_kb * 1024:
            return ending(
                Status.RUNTIME_ERROR, "reply_too_large", size=size, limit=self.limits.reply_kb * 1024
            )
        if len(reply) > 4 + size:
            return self._unsolicited()
        return len(reply) == 4 + size

    def _drain_output(self) -> bool:
        """Take what was printed. False when the pipe is closed."""
        cap = self.limits.output_kb * 1024
        while self.printed_bytes <= cap:
            try:
                chunk = os.read(self._output, 65536)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.printed_bytes += len(chunk)
            self._printed += chunk
        return True

    def _over_limit(self, cpu_start: float, cpu_limit_ms: int, end: float) -> Ending | None:
        cpu = self.cpu_ms()
        if cpu - cpu_start > cpu_limit_ms:
            return self._too_slow(cpu - cpu_start, cpu_limit_ms)
        total = cpu - self._cpu_before
        if total > self.limits.total_ms:
            return ending(
                Status.TIME_LIMIT, "total_cpu_limit", used_ms=round(total), limit_ms=self.limits.total_ms
            )
        if time.monotonic() > end:
            return self._too_long(cpu - cpu_start)
        held = memory_of(self._pid)
        # What it was forked with is no merit: a program that gives that back must not have it on top of its limit.
        self._least_bytes = min(self._least_bytes, held or self._least_bytes)
        if held - self._least_bytes > self.limits.memory_mb << 20:
            return ending(Status.MEMORY_LIMIT, "memory_limit", limit_mb=self.limits.memory_mb)
        return None

    def _too_slow(self, used_ms: float, limit_ms: int) -> Ending:
        return ending(Status.TIME_LIMIT, "cpu_limit", used_ms=round(used_ms), limit_ms=limit_ms)

    def _too_long(self, used_ms: float) -> Ending:
        waited = (time.monotonic() - self._started_at) * 1000
        limit = self.limits.total_wall_ms if waited > self.limits.total_wall_ms else self.limits.wall_ms
        return ending(Status.TIME_LIMIT, "wall_limit", used_ms=round(max(0.0, used_ms)), limit_ms=limit)

    def _readable(self, fd: int) -> bool:
        ready, _, _ = select.select([fd], [], [], 0)
        return bool(ready) and bool(self._peek(fd))

    def _peek(self, fd: int) -> bytes:
        try:
            return os.read(fd, 1)
        except BlockingIOError:
            return b""

    def _unsolicited(self) -> Ending:
        return ending(Status.RUNTIME_ERROR, "unsolicited_bytes")

    def _end_from_exit(self) -> Ending:
        """The child closed its reply pipe or ended: ask the guard how. Raises SandboxError if the guard is gone without a
        word: no child can end it, and a child whose guard ends is killed, whatever it was doing."""
        report = self._next_report(0.2)
        if report is None and self._guard_gone:
            raise SandboxError("the guard of a child is gone")
        if report is None:  # it closed the pipe and lives on
            return ending(Status.RUNTIME_ERROR, "broken_reply")
        if "setup_error" in report:
            raise SandboxError(f"the sandbox could not be set up: {report['setup_error']}")
        code = int(report["exit"])
        if code >= 0:
            return ending(Status.RUNTIME_ERROR, "ended_early", exit=code)
        if -code == signal.SIGKILL and report["cpu_s"] * 1000 >= self.limits.total_ms:
            used = round(report["cpu_s"] * 1000)
            return ending(Status.TIME_LIMIT, "total_cpu_limit", used_ms=used, limit_ms=self.limits.total_ms)
        return ending(Status.RUNTIME_ERROR, "killed_by_signal", signal=signal_name(-code))

    def kill(self) -> None:
        """End the child now. It is pid 1 of its namespace, so all of it ends."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):  # it was faster
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """End the child and wait until its guard has reaped it. Raises SandboxError if that takes too long."""
        if self._closed:
            return
        self._closed = True
        if self._pid == 0 and self.ended is None:
            with contextlib.suppress(SandboxError):  # nothing was started that could be ended
                self.ended = self._start()
        self.kill()
        os.close(self._requests)
        end = time.monotonic() + REAP_DEADLINE_S
        while self._next_report(max(0.0, end - time.monotonic())) is not None:
            pass
        for fd in (self._replies, self._output, self._status):
            os.close(fd)
        if self._pidfd >= 0:
            os.close(self._pidfd)
        if time.monotonic() > end:
            raise SandboxError("a child did not end within its deadline after SIGKILL")


def memory_of(pid: int) -> int:
    """Bytes of resident memory that no file stands behind: a process's own (RssAnon), and what it could share with others
    (RssShmem). 0 once it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            kept = [line for line in file if line.startswith(("RssAnon:", "RssShmem:"))]
            return sum(int(line.split()[1]) for line in kept) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended: the next poll says how
    return 0


def signal_name(number: int) -> str:
    """SIGKILL for 9; SIG40 for one that has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def ending(status: Status, code: str, **params: object) -> Ending:
    """An Ending with the message `code` and its parameters."""
    return Ending(status, Message(code, params))
