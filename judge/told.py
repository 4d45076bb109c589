"""What is believed of a child's report, and what of it may be told: a submission chooses every word of an exception, and
must not choose what a page, a terminal or a hidden case shows."""

from __future__ import annotations

import builtins
from typing import Any

from judge.core.case import Failure
from judge.core.verdict import Message

UNSUPPORTED = "unsupported"
# Signals by which programs die of faults. Any other one a program has sent to itself, to say which.
FAULTS = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGKILL"})


def reported_failure(body: dict[str, Any]) -> Failure:
    """A child's report of a failure, believed only in its form."""
    detail = body.get("unsupported")
    if isinstance(detail, dict):
        # Both cleaned before they are joined: a NUL of the submission's own would move the border between them.
        field, kind = (clean(str(detail.get(key, ""))) for key in ("field", "type"))
        return Failure(UNSUPPORTED, text=f"{field}\0{kind}")
    name = body.get("type")
    known = isinstance(name, str) and isinstance(getattr(builtins, name, None), type)
    line, code = body.get("line"), body.get("code")
    return Failure(
        name if known and isinstance(name, str) else "Exception",
        code if isinstance(code, str) and code.isidentifier() else "",
        line if type(line) is int else 0,
        clean(str(body.get("text", ""))),
    )


def exception_message(code: str, failure: Failure, lines: int, hidden: bool) -> Message:
    """What to say of an exception; for hidden cases the built-in class and the learner's own line only."""
    params: dict[str, Any] = {"type": failure.type}
    if 0 < failure.line <= lines:
        params["line"] = failure.line
    elif code == "exception":
        code = "exception_no_line"
    else:
        params["line"] = 0
    if not hidden and failure.text:
        params["text"] = failure.text
    return Message(code, params)


def redacted_ending(message: Message) -> Message:
    """How a hidden case ended, without the numbers that a submission can choose."""
    params = dict(message.params)
    if message.code == "reply_too_large":
        return Message("reply_over_limit", {"limit": params["limit"]})
    if message.code == "ended_early" or (
        message.code == "killed_by_signal" and params["signal"] not in FAULTS
    ):
        return Message("ended_without_result")
    if "used_ms" in params:
        params["used_ms"] = round(params["used_ms"] / 10) * 10
    return Message(message.code, params)


def clean(text: str, limit: int = 500) -> str:
    """Text of a submission for a page or a terminal: no control, format (bidi) or surrogate characters."""
    return "".join(c for c in text.replace("\t", " ") if c.isprintable() or c == "\n")[:limit]
