"""From tokens to text while they come, one request at a time.

A token is not a piece of text: three of them may be one character. What is sent must never be taken back, so a
piece of text waits until it cannot change any more. At the end the rest is sent whatever it is, so that all
pieces joined are the decoded whole, even if the answer stops inside a character.

Stop texts are looked for in what is about to be sent. A piece that may be the beginning of one waits as well.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from minisgl.core import FinishReason, SamplingParams
from minisgl.message.frontend import TokenReport, TokenText, UserReply
from minisgl.message.tokenizer import DetokenizeMsg

REPLACEMENT = "\ufffd"  # what decoders write for bytes that are no character
LEAST_LOGPROB = -9999.0  # for what cannot be: JSON has no infinity
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


class StreamDecoder:
    """Decodes a growing list of tokens.

    Between two calls the tokens fall into three parts:

        0 ......... context ......... read ......... end
        |  done with  |  decoded again   |  text held  |
        |             |  for what is     |  back       |
        |             |  next to it      |             |

    A tokenizer may write a token differently at the beginning of a text (without its space, for one), so new
    tokens are decoded together with some before them, whose text is then taken off.

    Invariants
    - at `read` a text could have ended: what was sent is the decoded text of the tokens before, and stays so
      whatever follows;
    - the tokens from context to read have a text that is not empty, unless context is 0.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._context = 0
        self._read = 0
        self._context_text = ""
        self._sent_of_held = 0
        self._special = frozenset(tokenizer.all_special_ids)
        self._in_byte_run = False

    @property
    def held(self) -> str:
        """Text of the tokens since `read` that has not been given out; it may still change."""
        return self._decode()[self._sent_of_held :]

    def push(self, token: int) -> str:
        """Take the next token; the text that is certain now, often empty."""
        self._ids.append(token)
        text = self._decode()
        # A run of byte tokens that turns out not to be UTF-8 is replaced as a whole, its first characters too:
        # nothing of it is certain before it ends. Special tokens are left out, so they do not end it.
        self._in_byte_run = _is_byte_token(self._tokenizer, token) or (
            self._in_byte_run and token in self._special
        )
        if self._in_byte_run:
            return ""
        certain = text.removesuffix(REPLACEMENT)
        new = certain[self._sent_of_held :]
        if certain == text:
            self._move_on(text)
        else:
            self._sent_of_held = max(self._sent_of_held, len(certain))
        return new

    def finish(self) -> str:
        """The rest of the text: nothing follows."""
        text = self._decode()
        new = text[self._sent_of_held :]
        self._move_on(text)
        return new

    def _decode(self) -> str:
        """Text of the tokens since `read`."""
        whole = decode(self._tokenizer, self._ids[self._context :])
        return whole[len(self._context_text) :]

    def _move_on(self, text: str) -> None:
        """Everything so far is certain: `text` is that of the tokens since `read`."""
        if text:
            self._context = self._read
        self._read = len(self._ids)
        self._context_text = decode(self._tokenizer, self._ids[self._context : self._read])
        self._sent_of_held = 0


class StopMatcher:
    """Lets text through up to the first of `stops`, which is the one that begins earliest.

    Invariant: what is held back is the longest end of the text so far with which a stop could begin.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Text that may be sent, and whether a stop was found: then it ends before it, and so does the answer."""
        self._held += text
        if ends := [at for stop in self._stops if (at := self._held.find(stop)) >= 0]:
            free, self._held = self._held[: min(ends)], ""
            return free, True
        keep = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        split = len(self._held) - keep
        free, self._held = self._held[:split], self._held[split:]
        return free, False

    def finish(self) -> str:
        """The rest: no stop has come."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`, and not all of it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0


class Piece(NamedTuple):
    """What a message brought. ended_here: a stop text was found before the scheduler knew of it."""

    reply: UserReply | None
    ended_here: bool


class AnswerStream:
    """One answer on its way out.

    Invariant: the texts of all replies so far, joined, are a beginning of the answer's text; reports have been
    sent of exactly those tokens that begin inside of it.
    """

    def __init__(self, tokenizer: Any, params: SamplingParams) -> None:
        self._tokenizer = tokenizer
        self._decoder = StreamDecoder(tokenizer)
        self._stops = StopMatcher(params.stop)
        self._decoded = 0  # characters that are certain
        self._sent = 0
        self._tokens = 0
        self._reports: deque[TokenReport] = deque()

    def push(self, message: DetokenizeMsg) -> Piece:
        """The reply to the front end that follows from a message; None if there is nothing to say yet."""
        text = ""
        if message.next_token is not None:
            self._tokens += 1
            if message.logprobs is not None:
                offset = self._decoded + len(self._decoder.held)
                self._reports.append(_report(self._tokenizer, message, offset))
            text = self._decoder.push(message.next_token)
        if message.finished:
            text += self._decoder.finish()
        self._decoded += len(text)
        text, stopped = self._stops.push(text)
        if message.finished and not stopped:
            text += self._stops.finish()
        self._sent += len(text)
        finished = message.finished or stopped
        # The first token is worth a reply even without text: its time is what a reader waits for.
        if not (text or finished or self._tokens == 1):
            return Piece(None, False)
        reason: FinishReason | None = "stop" if stopped else message.finish_reason
        reply = UserReply(
            uid=message.uid,
            text=text,
            finished=finished,
            finish_reason=reason,
            error=message.error,
            prompt_tokens=message.prompt_tokens,
            completion_tokens=self._tokens,
            cached_tokens=message.cached_tokens,
            reports=self._due_reports(all_of_them=finished and not stopped),
        )
        return Piece(reply, stopped and not message.finished)

    def _due_reports(self, all_of_them: bool) -> tuple[TokenReport, ...]:
        due = []
        while self._reports and (all_of_them or self._reports[0].offset < self._sent):
            due.append(self._reports.popleft())
        return tuple(due)


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of tokens, without special ones and exactly as it was generated."""
    text: str = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text


def token_bytes(tokenizer: Any, token: int) -> bytes | None:
    """The bytes that a token stands for, where tokens are made of bytes; None otherwise."""
    name = tokenizer.convert_ids_to_tokens(token)
    if name is None:  # the model's vocabulary is larger than the tokenizer's
        return b""
    if byte := _BYTE_TOKEN.fullmatch(name):
        return bytes([int(byte[1], 16)])
    text: str = tokenizer.decode([token], clean_up_tokenization_spaces=False)
    if REPLACEMENT not in text:
        return text.encode()
    if all(char in _BYTE_OF for char in name):
        return bytes(_BYTE_OF[char] for char in name)
    return None


def _byte_alphabet() -> dict[str, int]:
    """The characters that byte-level tokenizers (GPT-2's and its heirs) write for each byte: itself if it can be
    printed, otherwise one of those from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def _is_byte_token(tokenizer: Any, token: int) -> bool:
    name = tokenizer.convert_ids_to_tokens(token)
    return name is not None and _BYTE_TOKEN.fullmatch(name) is not None


def _report(tokenizer: Any, message: DetokenizeMsg, offset: int) -> TokenReport:
    assert message.next_token is not None
    assert message.logprobs is not None

    def told(token: int, logprob: float) -> TokenText:
        text = tokenizer.decode([token], clean_up_tokenization_spaces=False)
        return TokenText(text, token_bytes(tokenizer, token), max(logprob, LEAST_LOGPROB))

    return TokenReport(
        token=told(message.next_token, message.logprobs.logprob),
        top=tuple(told(token, logprob) for token, logprob in message.logprobs.top),
        offset=offset,
    )
