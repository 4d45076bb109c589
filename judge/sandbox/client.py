"""The judge's end of the sandbox: zygotes and stages, which give it children (`process.Child`)."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.sandbox.process import RESERVE_S, Child, ChildLimits, SandboxError

ROOT = Path(__file__).resolve().parent.parent.parent
START_DEADLINE_S = 120.0  # importing torch on a slow, busy machine
STAGE_DEADLINE_S = 60.0
# Each child gets a number, and as root a uid, that no other running child of this process has.
SLOTS = itertools.count()
SLOT_COUNT = 4096


@dataclass(frozen=True)
class Scene:
    """What a version of a problem shows: folders on the path, modules imported beforehand, the driver's text."""

    paths: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    driver: str = ""


class Zygote:
    """A process with torch loaded (`zygote.py`). `name` says what it is for, in errors.

    Invariant: submissions and references never share one, so that no answer is in a submission's ancestry.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._base = tempfile.mkdtemp(prefix="judge-root-")
        os.chmod(self._base, 0o755)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = Path(__file__).with_name("zygote.py")
        options = json.dumps({"root": str(ROOT), "base": self._base})
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(program), str(theirs.fileno()), options],
            pass_fds=[theirs.fileno()],
            env={},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._control = ours
        self._lock = threading.Lock()
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until torch is loaded. Raises SandboxError."""
        with self._lock:
            if not self._ready:
                _receive(self._control, START_DEADLINE_S, f"the zygote for {self.name}s")
                self._ready = True

    def stage(self, scene: Scene, tier: str = "strong") -> Stage:
        """A second zygote with the scene imported, whose children are confined as `tier` says (strong or medium).
        Raises SandboxError, with the scene's own error if it has one."""
        self.wait_ready()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"paths": scene.paths, "modules": scene.modules, "driver": scene.driver, "tier": tier}
        try:
            with self._lock:
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno()])
        except OSError as error:
            ours.close()
            raise SandboxError(f"the zygote for {self.name}s is gone: {error}") from error
        finally:
            theirs.close()
        answer = _receive(ours, STAGE_DEADLINE_S, "staging a problem")
        return Stage(ours, answer["private_mb"])

    def close(self) -> None:
        """End the zygote and all it has forked. One that has torch to load yet would not hear of it for seconds."""
        self._control.close()
        if not self._ready:
            self._process.kill()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        os.rmdir(self._base)


class Stage:
    """A second zygote: one version of a problem, ready to fork children.

    Invariant: `_spare` is a child that nobody has been given yet, behind closed doors, waiting for its submission; it
    was forked while nobody waited, which saves the next submission that time.
    """

    def __init__(self, control: socket.socket, memory_mb: float) -> None:
        """`memory_mb`: what the second zygote holds for itself."""
        self._control = control
        self.memory_mb = memory_mb
        self._lock = threading.Lock()
        self._spare: Child | None = None
        self._closed = False

    def spawn(self, limits: ChildLimits) -> Child:
        """A child of its own for one program: the spare, or a new one."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            if spare.limits == limits:
                return spare
            spare.close()
        return self._fork(limits)

    def prefork(self, limits: ChildLimits) -> None:
        """Make a spare, if there is none."""
        with self._lock:
            if self._spare is not None or self._closed:
                return
        child = self._fork(limits)
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = child
                return
        child.close()

    def _fork(self, limits: ChildLimits) -> Child:
        pipes = [os.pipe() for _ in range(4)]
        (their_in, ours_in), (ours_out, their_out), (ours_print, their_print), (ours_status, their_status) = (
            pipes
        )
        request = {
            "slot": next(SLOTS) % SLOT_COUNT,
            "memory": limits.memory_mb << 20,
            "cpu_s": limits.total_ms // 1000 + RESERVE_S,
        }
        theirs = [their_in, their_out, their_print, their_status]
        try:
            with self._lock:
                socket.send_fds(self._control, [json.dumps(request).encode()], theirs)
        except OSError as error:
            for fd in (ours_in, ours_out, ours_print, ours_status):
                os.close(fd)
            raise SandboxError(f"a stage is gone: {error}") from error
        finally:
            for fd in theirs:
                os.close(fd)
        return Child(limits, ours_in, ours_out, ours_print, ours_status)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
        self._control.close()


def _receive(control: socket.socket, deadline_s: float, what: str) -> dict[str, Any]:
    control.settimeout(deadline_s)
    try:
        data = control.recv(1 << 16)
    except TimeoutError:
        raise SandboxError(f"{what}: no answer within {deadline_s:.0f} s") from None
    finally:
        control.settimeout(None)
    if not data:
        raise SandboxError(f"{what}: the process ended (its error is above, on stderr)")
    answer: dict[str, Any] = json.loads(data)
    if "error" in answer:
        raise SandboxError(f"{what}: {answer['error']}")
    return answer
