"""Messages to the tokenizer: texts that become tokens, and tokens that become text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minisgl.core import FinishReason, SamplingParams


class BaseTokenizerMsg:
    """Anything that the tokenizer or the detokenizer receives."""


@dataclass(frozen=True)
class TokenizeMsg(BaseTokenizerMsg):
    """A prompt: text, a chat as a list of {"role", "content"}, or token ids.

    template_args: for the model's chat template, such as {"enable_thinking": False}.
    """

    uid: int
    prompt: str | list[dict[str, Any]] | tuple[int, ...]
    sampling_params: SamplingParams
    template_args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenLogprobs:
    """logprob: of the token itself, natural logarithm. top: (token id, logprob) of the most probable ones."""

    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class DetokenizeMsg(BaseTokenizerMsg):
    """One step of a request.

    next_token: the token that it brought; None where a request ends without one (aborted, refused).
    finished: nothing follows; exactly one message of a request says so.
    finish_reason: given with `finished`: "stop" (an end-of-text token, a stop token or a stop text),
    "length", "abort" or "error".
    error: for "error", what is wrong with the request, for its sender to read.
    prompt_tokens, cached_tokens: length of the prompt, and how much of it needed no computing.
    """

    uid: int
    next_token: int | None
    finished: bool
    finish_reason: FinishReason | None = None
    error: str | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    logprobs: TokenLogprobs | None = None


@dataclass(frozen=True)
class AbortMsg(BaseTokenizerMsg):
    """Nobody wants the rest of this request; handed on to the scheduler."""

    uid: int


@dataclass(frozen=True)
class AskStatusMsg(BaseTokenizerMsg):
    """How is the scheduler? Handed on to it."""

    uid: int


@dataclass(frozen=True)
class SchedulerStatusMsg(BaseTokenizerMsg):
    """How the scheduler is, handed on to the front end.

    status: num_pages of the pool; available_pages, which nobody is using (free, or cached and evictable);
    running and waiting requests; max_seq_len, prompt and answer together.
    """

    uid: int
    status: dict[str, int]


@dataclass(frozen=True, eq=False)
class BatchTokenizerMsg(BaseTokenizerMsg):
    """Several messages in one, in order."""

    data: list[BaseTokenizerMsg]


TOKENIZER_TYPES = (
    TokenizeMsg,
    AbortMsg,
    AskStatusMsg,
    DetokenizeMsg,
    SchedulerStatusMsg,
    BatchTokenizerMsg,
    TokenLogprobs,
    SamplingParams,
)
"""All that may be in a frame for the tokenizer."""
