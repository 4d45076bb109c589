"""What runs in the sandbox: load the submission, then answer one case at a time.

Nothing here is trusted by anyone: the submission shares this process and may change all of it. The judge believes only
the values that come back, and checks those. Requests come by one pipe, replies go by another, as frames; standard
output is a third.

    load  {source, entry, arity, signature, kind, target, calls}  ->  loaded | compile_error | load_failed
    case  {inputs}                                                ->  outputs VALUE | failed {type, code, line, text, ...}

Where a problem is about calls, a case is a conversation. What the submission calls lives outside, so that nobody in here
can make up what was called; until the case's outputs come, the child may also say

    call  {name, args, kwargs}                                    <-  returned VALUE | raised {type, code, text}
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.abc
import inspect
import linecache
import os
import struct
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

from judge.core import frames
from judge.core.values import ValueFormError

FILENAME = "submission.py"
TEXT_LIMIT = 500
# Modules whose exceptions carry a `code` that may be compared between programs: the fakes' and the engine's.
KERNEL_ERROR = "KernelError"
TREE = "minisgl"


def serve(requests: int, replies: int, driver: types.ModuleType | None) -> None:
    """Answer requests until the pipe closes. A second `load` begins anew, with another program."""
    module: types.ModuleType | None = None
    entry: Callable[..., Any] | None = None
    caller: Caller | None = None
    scene = set(sys.modules)
    while (request := _read(requests)) is not None:
        if request.kind == "load":
            if request.body["kind"] == "file":
                _forget(set(sys.modules) - scene)
            reply, module, entry = load(request.body)
            caller = Caller(requests, replies) if request.body.get("calls") else None
        elif entry is None:
            return
        else:
            reply = answer(module, entry, driver, request.body["inputs"], caller)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the submission may have closed or replaced it
                stream.flush()
        _write(replies, reply)


def _forget(names: set[str]) -> None:
    """Drop modules of the tree that an earlier program was imported by."""
    for name in names:
        if name.partition(".")[0] == TREE:
            del sys.modules[name]


class Caller:
    """What a driver gets as its third argument when its problem is about calls: `call(name, *args, **kwargs)` has the
    judge's side do it, and returns or raises what came of it."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        body = {"name": name, "args": list(args), "kwargs": kwargs}
        _write(self._replies, frames.encode("call", body))
        reply = _read(self._requests)
        if reply is None:
            raise SystemExit("the judge is gone")
        if reply.kind == "returned":
            return reply.body
        raise remote_error(reply.body)


def remote_error(body: dict[str, Any]) -> Exception:
    """An exception from the other side, as one of the same built-in class; with a `code` if a kernel raised it."""
    base = getattr(builtins, body["type"], RuntimeError)
    if not body["code"]:
        return base(body["text"])
    error: Exception = type(KERNEL_ERROR, (base,), {"code": body["code"]})(body["text"])
    return error


def _read(fd: int) -> frames.Frame | None:
    head = _read_exactly(fd, 4)
    if head is None:
        return None
    (size,) = struct.unpack("<I", head)
    body = _read_exactly(fd, size)
    return None if body is None else frames.decode(body)


def _read_exactly(fd: int, size: int) -> bytearray | None:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(fd, min(size - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return data


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def load(request: dict[str, Any]) -> tuple[bytes, types.ModuleType | None, Callable[..., Any] | None]:
    """Compile and execute the submission as a module of its own, find its entry, and, for a graft, set it on its
    target. Returns the reply, and the module and entry if there was no error."""
    source = request["source"]
    try:
        code = compile(source, FILENAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        detail = {
            "line": error.lineno or 0,
            "column": error.offset or 0,
            "text": (error.text or "")[:200],
            "reason": str(error.msg)[:200],
        }
        return frames.encode("compile_error", {"code": "syntax_error", "params": detail}), None, None
    except (RecursionError, MemoryError, OverflowError, ValueError) as error:
        detail = {"line": 0, "column": 0, "text": "", "reason": f"{type(error).__name__}: {error}"[:200]}
        return frames.encode("compile_error", {"code": "syntax_error", "params": detail}), None, None
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(True), FILENAME)
    try:
        if request["kind"] == "file":
            module = stand_in(request["target"], code)
        else:
            module = types.ModuleType("submission")
            module.__file__ = FILENAME
            sys.modules["submission"] = module
            exec(code, module.__dict__)
        entry = module.__dict__.get(request["entry"])
        problem = _entry_problem(entry, request)
    except BaseException as error:  # noqa: BLE001  whatever it raises, SystemExit too, is its own result
        return frames.encode("load_failed", describe(error)), None, None
    if problem is not None:
        return frames.encode("compile_error", problem), None, None
    assert entry is not None
    if request["kind"] == "graft":
        graft(request["target"], entry)
    return frames.encode("loaded", None), module, entry


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a submission where Python looks for the file of the tree that it stands in for, whoever imports it first."""

    def __init__(self, name: str, code: types.CodeType) -> None:
        self.name = name
        self.code = code

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        spec = ModuleSpec(name, self, origin=FILENAME)
        spec.has_location = True
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self.code, module.__dict__)


def stand_in(target: str, code: types.CodeType) -> types.ModuleType:
    """Import the submission as the module of the file `target`."""
    name = target.removesuffix(".py").replace("/", ".")
    sys.meta_path[:] = [StandIn(name, code), *(f for f in sys.meta_path if type(f) is not StandIn)]
    return importlib.import_module(name)


def _entry_problem(entry: Any, request: dict[str, Any]) -> dict[str, Any] | None:
    """Why the entry cannot be called as the problem says, or None."""
    name, signature = request["entry"], request["signature"]
    if entry is None:
        return {"code": "missing_entry", "params": {"entry": name, "signature": signature}}
    if not callable(entry):
        params = {"entry": name, "type": type(entry).__name__[:80]}
        return {"code": "entry_not_callable", "params": params}
    try:
        own = inspect.signature(entry)
    except (TypeError, ValueError):  # a built-in without a signature: calling it will tell
        return None
    try:
        own.bind(*range(request["arity"]))
    except TypeError:
        params = {"entry": name, "got": str(own)[:200], "count": request["arity"], "signature": signature}
        return {"code": "wrong_signature", "params": params}
    return None


def graft(target: str, function: Callable[..., Any]) -> None:
    """Set `function` on its place in the tree: `minisgl/a/b.py:Class.method` or `minisgl/a/b.py:function`."""
    path, _, symbol = target.partition(":")
    owner: Any = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    *parents, name = symbol.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, name, function)


def answer(
    module: types.ModuleType | None,
    entry: Callable[..., Any],
    driver: types.ModuleType | None,
    inputs: dict[str, Any],
    caller: Caller | None,
) -> bytes:
    """Run one case. The default driver calls the entry with the inputs, by position, in their order."""
    try:
        if driver is None:
            outputs = entry(*inputs.values())
        elif caller is None:
            outputs = driver.run(module, inputs)
        else:
            outputs = driver.run(module, inputs, caller)
        return frames.encode("outputs", outputs)
    except ValueFormError as error:
        detail = {"field": error.field[:200], "type": error.type_name[:200]}
        return frames.encode("failed", {"unsupported": detail})
    except frames.FrameError as error:
        return frames.encode("failed", {"unsupported": {"field": "", "type": str(error)[:200]}})
    except BaseException as error:  # noqa: BLE001  whatever it raises, SystemExit too, is its own result
        return frames.encode("failed", describe(error))


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: the nearest built-in class, the learner's own line, the text, and the code if a fake
    kernel or the engine raised it."""
    builtin = next((c for c in type(error).__mro__ if c.__module__ == "builtins"), Exception)
    kernel = any(c.__name__ == KERNEL_ERROR for c in type(error).__mro__)
    code = getattr(error, "code", "") if kernel else ""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an exception whose __str__ raises still has a class and a line
        text = ""
    return {
        "type": builtin.__name__,
        "code": code[:80] if type(code) is str else "",
        "line": learner_line(error),
        "text": text.encode("utf-8", "replace").decode()[:TEXT_LIMIT],
    }


def learner_line(error: BaseException) -> int:
    """The innermost line of the submission in a traceback; 0 if there is none."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
