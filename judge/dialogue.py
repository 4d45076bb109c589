"""A case that is a conversation: problems about calls (plan once a batch; which order of plan, copy and event is safe).

A trace made where the submission runs proves nothing, so what it calls is not there. Each call leaves the sandbox as a
frame, the coordinator carries it unread to the checker, the package's `stub.py` does it there (on the checker's own
fake kernels, say) and notes it, and the result goes back. The case's outputs are what the driver returned and what the
stub noted; a submission that forges call frames has only made those calls.

`Dialogue` is the checker's end, `converse` the coordinator's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judge.core import frames
from judge.core.status import Status
from judge.core.verdict import Message
from judge.patience import Impatient, Patience
from judge.sandbox.child import describe
from judge.sandbox.process import Child, Ending, Reply

if TYPE_CHECKING:
    from judge.sandbox.local import LocalChild

MOST_CALLS = 2000
MOST_BYTES = 4 << 20  # of all calls of one case: a stub may keep what it is given
Step = Callable[[bytes], tuple[bool, bytes]]
"""A child's frame -> (whether the case is over, the frame to send back or the final reply; empty: too many calls)."""


class TooMuch(Exception):
    """A submission that calls more than any solution would."""


class Dialogue:
    """One case's stub, and what has been called so far. `stub`: an object of the package with `call(name, args, kwargs)`
    (returns a value of the value model, or raises what the submission shall see raised) and `outputs()` (a dict).

    What the submission gives goes into the stub and may come out again, larger than it was: as a text, or as part of the
    notes. So whatever goes wrong here may be the submission's doing; who asked for the case decides (`checker.step`)."""

    def __init__(self, stub: Any, patience: Patience) -> None:
        self.stub = stub
        self.patience = patience
        self.calls = 0
        self.bytes = 0

    def step(self, reply: bytes) -> tuple[bool, bytes]:
        """Take one frame of the child: do the call it asks for, or finish the case. Raises TooMuch, or what the stub
        raises."""
        try:
            with self.patience.spend():
                return self._step(reply)
        except Impatient:
            raise TooMuch from None

    def _step(self, reply: bytes) -> tuple[bool, bytes]:
        try:
            frame = frames.decode(reply)
        except frames.FrameError:
            return True, reply
        if frame.kind == "call":
            self.bytes += len(reply)
            return False, self._call(frame.body)
        if frame.kind != "outputs":
            return True, reply
        told = frame.body
        named = told if isinstance(told, dict) and all(type(k) is str for k in told) else {"result": told}
        try:
            return True, frames.encode("outputs", {**named, **self.stub.outputs()})[frames.LENGTH.size :]
        except frames.FrameError:
            raise TooMuch from None  # so many calls that what was noted of them fits no frame

    def _call(self, body: Any) -> bytes:
        self.calls += 1
        if self.calls > MOST_CALLS or self.bytes > MOST_BYTES:
            raise TooMuch
        try:
            name, args, kwargs = body["name"], body["args"], body["kwargs"]
            if type(name) is not str or type(args) is not list or type(kwargs) is not dict:
                raise TypeError("a call has a name, a list of arguments and a dict of named ones")
            value = self.stub.call(name, args, kwargs)
        except Impatient:
            raise
        except Exception as error:  # noqa: BLE001  as the real thing would, it raises where it was called
            told = describe(error)
            return frames.encode("raised", {k: told[k] for k in ("type", "code", "text")})
        try:
            return frames.encode("returned", value)
        except frames.FrameError:
            raise TooMuch from None  # what it was made to give fits no frame


def converse(
    child: Child | LocalChild, frame: bytes, step: Step, cpu_limit_ms: int | None = None
) -> Reply | Ending:
    """Run one case with a child, carrying its calls. CPU time and output are those of the whole case."""
    limit = cpu_limit_ms or child.limits.case_ms
    used, printed = 0.0, b""
    while True:
        answer = child.exchange(frame, max(1, round(limit - used)))
        if isinstance(answer, Ending):
            return _whole(answer, used, limit)
        used += answer.cpu_ms
        printed += answer.output
        asked_at = time.monotonic()
        over, frame = step(answer.data)
        child.forgive(time.monotonic() - asked_at)  # the checker answers everybody, one after another
        if not frame:
            child.kill()
            return Ending(Status.RUNTIME_ERROR, Message("too_many_calls", {"limit": MOST_CALLS}))
        if over:
            return Reply(frame, used, printed)


def _whole(ending: Ending, used_ms: float, limit_ms: int) -> Ending:
    """An ending that speaks of the last exchange, as one that speaks of the case."""
    if ending.message.code != "cpu_limit":
        return ending
    params = {"used_ms": ending.message.params["used_ms"] + round(used_ms), "limit_ms": limit_ms}
    return replace(ending, message=Message("cpu_limit", params))
