"""The checker: a process that makes the cases, holds the answers and compares. It is asked by `judge.Judge` and runs no
submission and no reference; replies reach it as bytes.

`serve` is the process, `CheckerClient` the judge's end of it. Requests are answered one at a time.
"""

from __future__ import annotations

import itertools
import logging
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from judge import rpc
from judge.core.status import Status
from judge.core.verdict import Message
from judge.dialogue import Dialogue, TooMuch
from judge.exam import Exam
from judge.packages import ROOT, PackageError, load_package
from judge.patience import Patience
from judge.sitting import Sitting
from judge.told import UNSUPPORTED, clean, exception_message, reported_failure

KEEP_EXAMS = 64
MEMORY_MB = 2048  # above what it has at its start: what looks at hostile outputs must not take the machine's
BROKEN = b"no frame"
log = logging.getLogger(__name__)


class Unknown(LookupError):
    """The judge speaks of something that is not here: it was closed, or was with a checker that has died."""


class Checker:
    """The checker's state.

    Invariants: `exams` holds the problem versions used last, the least recently used first; a number of a sitting or a
    dialogue is never one that an earlier checker has given out.
    """

    def __init__(self) -> None:
        self.exams: OrderedDict[str, Exam] = OrderedDict()
        self.sittings: dict[int, Sitting] = {}
        self.dialogues: dict[int, Dialogue] = {}
        self.numbers = itertools.count(time.monotonic_ns())

    def _exam(self, version: str) -> Exam:
        if version not in self.exams:
            raise Unknown(f"problem version {version}")
        self.exams.move_to_end(version)
        return self.exams[version]

    def _sitting(self, request: dict[str, Any]) -> Sitting:
        if request["sitting"] not in self.sittings:
            raise Unknown(f"sitting {request['sitting']}")
        return self.sittings[request["sitting"]]

    def hello(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        import torch

        return {"torch": torch.__version__.split("+")[0], "python": platform.python_version()}, []

    def prepare(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """Load a package; give the frames of its seed-independent cases."""
        package = load_package(Path(request["folder"]))
        if package.version not in self.exams:
            while len(self.exams) >= KEEP_EXAMS:
                self.exams.popitem(last=False)
            self.exams[package.version] = Exam(package)
        exam = self._exam(package.version)
        return {"version": package.version, "names": [c.name for c in exam.cases]}, exam.frames

    def learn(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """What the reference (`name` empty) or a known mistake gives for the seed-independent cases."""
        exam = self._exam(request["version"])
        if request["name"]:
            exam.mistakes[request["name"]] = [exam.outcome(b) for b in blobs]
        else:
            exam.learn_answers(blobs)
        return {}, []

    def open(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """A new sitting: its cases in order, the teach cases last."""
        exam = self._exam(request["version"])
        sitting = Sitting(exam, bytes.fromhex(request["seed"]), request["which"])
        sitting.source_lines = request["lines"]
        key = next(self.numbers)
        self.sittings[key] = sitting
        groups = [c.group for c in sitting.cases]
        header = {"sitting": key, "n": sitting.n, "groups": groups, "drawn": sitting.drawn}
        return header, sitting.frames

    def learn_drawn(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """What the reference or a known mistake gives for a sitting's random cases."""
        sitting = self._sitting(request)
        if request["name"]:
            sitting.learn_mistake(request["name"], blobs)
        else:
            sitting.learn_answers(blobs)
        return {}, []

    def step(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """Carry a case's conversation on: a child's frame, and, where it begins (no `dialogue`), the case's. `sitting` is
        None for a reference, which is trusted: what the stub raises then is its own fault."""
        exam, key = self._exam(request["version"]), request["dialogue"]
        sitting = None if request["sitting"] is None else self._sitting(request)
        if key is None:
            key = next(self.numbers)
            self.dialogues[key] = exam.dialogue(blobs[1], sitting.patience if sitting else None)
        elif key not in self.dialogues:
            raise Unknown(f"dialogue {key}")
        try:
            over, frame = self.dialogues[key].step(blobs[0])
        except TooMuch:
            over, frame = True, b""
        except Exception as error:  # nobody else must lose their checker for it
            if sitting is None:
                del self.dialogues[key]
                raise exam.blame("stub.py", error) from error
            log.warning("problem %s: calls that stub.py could not follow: %.200r", exam.package.id, error)
            over, frame = True, BROKEN
        if over:
            del self.dialogues[key]
        return {"over": over, "dialogue": key}, [frame]

    def leave(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """A conversation whose child has ended."""
        self.dialogues.pop(request["dialogue"], None)
        return {}, []

    def check(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        sitting = self._sitting(request)
        result = sitting.check(request["index"], blobs[0], blobs[1], request["cpu_ms"])
        return {"case": result.to_json()}, []

    def end(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """A case that gave no reply: how it ended."""
        message = Message.from_json(request["message"]) if request["message"] else None
        result = self._sitting(request).end(request["index"], Status(request["status"]), message)
        return {"case": result.to_json()}, []

    def loading(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """What a reply to `load` means: nothing if all is well, else status and message."""
        from judge.core import frames

        lines = self._sitting(request).source_lines
        try:
            frame = frames.decode(blobs[0])
            if frame.kind == "loaded":
                return {"status": None}, []
            if frame.kind == "load_failed":
                failure = reported_failure(frame.body)
                if failure.type == UNSUPPORTED:
                    raise ValueError("nothing was returned that could be of a wrong type")
                message = exception_message("exception_on_load", failure, lines, hidden=False)
                status = Status.MEMORY_LIMIT if failure.type == "MemoryError" else Status.RUNTIME_ERROR
                return {"status": status, "message": message.to_json()}, []
            message = _compile_message(frame.body)
            return {"status": Status.COMPILE_ERROR, "message": message.to_json()}, []
        except Exception:  # noqa: BLE001  a reply that is none: the submission's doing
            return {"status": Status.RUNTIME_ERROR, "message": Message("broken_reply").to_json()}, []

    def possible_mistakes(
        self, request: dict[str, Any], blobs: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Names of the known mistakes that a sitting's seed-independent cases do not rule out."""
        sitting = self._sitting(request)
        try:
            names = sitting.possible_mistakes()
        except Exception:  # as in finish
            log.exception("no mistakes compared")
            names = []
        return {"names": names}, []

    def finish(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        sitting = self._sitting(request)
        try:
            diagnosis, counterexample = sitting.finish()
        except Exception:  # an output made to break it: the verdict stands, there is nothing more to say
            log.exception("no diagnosis")
            diagnosis, counterexample = [], None
        return {"diagnosis": diagnosis, "counterexample": counterexample}, []

    def close(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        self.sittings.pop(request["sitting"], None)
        return {}, []


# The sentences a load may end with, and the parameters each may have: a submission cannot make up others.
COMPILE_CODES: dict[str, dict[str, type]] = {
    "syntax_error": {"line": int, "column": int, "text": str, "reason": str},
    "missing_entry": {"entry": str, "signature": str},
    "entry_not_callable": {"entry": str, "type": str},
    "wrong_signature": {"entry": str, "got": str, "count": int, "signature": str},
}


def _compile_message(body: Any) -> Message:
    kinds = COMPILE_CODES[body["code"]]
    given = body["params"]
    params = {}
    for name, kind in kinds.items():
        if type(given[name]) is not kind:
            raise TypeError(name)
        params[name] = clean(given[name], 300) if kind is str else given[name]
    return Message(body["code"], params)


def serve(sock: socket.socket) -> None:
    """Answer until the judge closes its end. A broken package is an answer, and so is what is not here; other errors end
    the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches us too; the judge decides
    checker = Checker()
    while (message := rpc.receive(sock)) is not None:
        request, blobs = message
        try:
            header, answer = getattr(checker, request["do"])(request, blobs)
        except PackageError as error:
            header, answer = {"package_error": [str(error.file), error.what, error.line]}, []
        except Unknown as error:
            header, answer = {"unknown": str(error)}, []
        rpc.send(sock, header, answer)


class CheckerClient:
    """A checker process. Thread-safe. Raises rpc.ConnectionLost when the process is gone or too slow, or is another than
    the one that was spoken to before."""

    def __init__(self, deadline_s: float = 60.0) -> None:
        ours, theirs = socket.socketpair()
        env = {"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from judge.checker import main; main()", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        ours.settimeout(deadline_s)
        self._sock = ours
        self._lock = threading.Lock()
        self._lost = False

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._lost and self._process.poll() is None

    def call(
        self, do: str, blobs: list[bytes] | None = None, **request: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        with self._lock:
            try:
                rpc.send(self._sock, {"do": do, **request}, blobs or [])
                answer = rpc.receive(self._sock)
            except rpc.ConnectionLost:
                self._lost = True
                raise
        if answer is None:
            self._lost = True
            raise rpc.ConnectionLost("the checker process ended (its error is above, on stderr)")
        header, out = answer
        if "package_error" in header:
            file, what, line = header["package_error"]
            raise PackageError(Path(file), what, line)
        if "unknown" in header:
            raise rpc.ConnectionLost(f"not with this checker: {header['unknown']}")
        return header, out

    def close(self) -> None:
        self._sock.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)


def limit_memory(more_mb: int) -> None:
    """Let this process have `more_mb` beyond what it has: an output made to need more raises MemoryError while it is
    looked at, which is its submission's error. Only Linux counts what a process has for itself."""
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/status") as file:
        now_kb = next(int(line.split()[1]) for line in file if line.startswith("VmData:"))
    most = (now_kb << 10) + (more_mb << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main() -> None:
    """The checker process: fakes and engine on the path, one thread, memory limited."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "fakes"))
    limit_memory(MEMORY_MB)
    Patience.enforced = True
    serve(socket.socket(fileno=int(sys.argv[1])))
