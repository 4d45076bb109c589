"""Messages to the front end, which is whoever the answers are for: the API server or the shell."""

from __future__ import annotations

from dataclasses import dataclass

from minisgl.core import FinishReason


class BaseFrontendMsg:
    """Anything that the front end receives."""


@dataclass(frozen=True)
class TokenText:
    """A token as text, for reports of log probabilities.

    text: the token decoded by itself; a token that is part of a character shows as U+FFFD.
    data: its bytes, or None for a tokenizer whose tokens are not made of bytes.
    logprob: natural logarithm of its probability.
    """

    text: str
    data: bytes | None
    logprob: float


@dataclass(frozen=True)
class TokenReport:
    """A token of an answer and the most probable tokens in its place.

    offset: characters of the answer's text before it.
    """

    token: TokenText
    top: tuple[TokenText, ...]
    offset: int


@dataclass(frozen=True)
class UserReply(BaseFrontendMsg):
    """The next piece of an answer.

    text: what the answer's text is longer by: whole characters, or nothing.
    finished: nothing follows; exactly one reply of a request says so, and has finish_reason and, where that
    is "error", an error for the request's sender to read.
    completion_tokens: tokens generated so far, the one that ended the answer among them.
    cached_tokens: prompt tokens that needed no computing.
    reports: for the tokens that `text` is made of, if log probabilities were asked for.
    """

    uid: int
    text: str
    finished: bool
    finish_reason: FinishReason | None = None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reports: tuple[TokenReport, ...] = ()


@dataclass(frozen=True)
class StatusReply(BaseFrontendMsg):
    """How the scheduler is; see SchedulerStatusMsg."""

    uid: int
    status: dict[str, int]


@dataclass(frozen=True)
class WorkerMsg(BaseFrontendMsg):
    """The process `name` of the engine is ready, or ends because of `error`."""

    name: str
    error: str | None = None


@dataclass(frozen=True, eq=False)
class BatchFrontendMsg(BaseFrontendMsg):
    """Several messages in one, in order."""

    data: list[BaseFrontendMsg]


FRONTEND_TYPES = (UserReply, StatusReply, WorkerMsg, BatchFrontendMsg, TokenText, TokenReport)
"""All that may be in a frame for the front end."""
