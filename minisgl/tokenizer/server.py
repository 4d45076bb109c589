"""The process between the front end and the scheduler: prompts become tokens on their way in, tokens become text
on their way out.

All messages of a request pass through one such process, in order, so an abort never overtakes its request, and
the state of a half-decoded answer is in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minisgl.message.backend import (
    AbortBackendMsg,
    AskStatusBackendMsg,
    BaseBackendMsg,
    BatchBackendMsg,
    UserMsg,
)
from minisgl.message.frontend import BaseFrontendMsg, BatchFrontendMsg, StatusReply, UserReply
from minisgl.message.tokenizer import (
    TOKENIZER_TYPES,
    AbortMsg,
    AskStatusMsg,
    BaseTokenizerMsg,
    BatchTokenizerMsg,
    DetokenizeMsg,
    SchedulerStatusMsg,
    TokenizeMsg,
)
from minisgl.message.utils import each, one_or_batch, pack, reader
from minisgl.scheduler.config import SchedulerConfig
from minisgl.tokenizer.detokenize import AnswerStream
from minisgl.tokenizer.tokenize import PromptError, Tokenizer
from minisgl.utils.hf import load_tokenizer
from minisgl.utils.mp import ZmqPullQueue, ZmqPushQueue

IDLE_S = 5.0


class TokenizerWorker:
    """What the process does, without its sockets.

    Invariant: `_answers` has exactly the requests that were handed to the scheduler and whose end has been told
    to neither side. What the scheduler still says of others is dropped.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._prompts = Tokenizer(tokenizer)
        self._answers: dict[int, AnswerStream] = {}

    def process(
        self, messages: Iterable[BaseTokenizerMsg]
    ) -> tuple[list[BaseBackendMsg], list[BaseFrontendMsg]]:
        """What follows from the messages: for the scheduler, and for the front end."""
        to_backend: list[BaseBackendMsg] = []
        to_frontend: list[BaseFrontendMsg] = []
        for message in messages:
            if isinstance(message, DetokenizeMsg):
                self._detokenize(message, to_backend, to_frontend)
            elif isinstance(message, TokenizeMsg):
                self._tokenize(message, to_backend, to_frontend)
            elif isinstance(message, AbortMsg):
                if self._answers.pop(message.uid, None) is not None:
                    to_backend.append(AbortBackendMsg(message.uid))
            elif isinstance(message, AskStatusMsg):
                to_backend.append(AskStatusBackendMsg(message.uid))
            elif isinstance(message, SchedulerStatusMsg):
                to_frontend.append(StatusReply(message.uid, message.status))
            else:
                raise TypeError(f"the tokenizer does not know what to do with a {type(message).__name__}")
        return to_backend, to_frontend

    def _tokenize(
        self, message: TokenizeMsg, to_backend: list[BaseBackendMsg], to_frontend: list[BaseFrontendMsg]
    ) -> None:
        try:
            input_ids = self._prompts.encode(message)
        except PromptError as error:
            to_frontend.append(UserReply(message.uid, "", True, "error", error=str(error)))
            return
        self._answers[message.uid] = AnswerStream(self._tokenizer, message.sampling_params)
        to_backend.append(UserMsg(message.uid, input_ids, message.sampling_params))

    def _detokenize(
        self, message: DetokenizeMsg, to_backend: list[BaseBackendMsg], to_frontend: list[BaseFrontendMsg]
    ) -> None:
        answer = self._answers.get(message.uid)
        if answer is None:
            return
        piece = answer.push(message)
        if piece.reply is not None:
            to_frontend.append(piece.reply)
            if piece.reply.finished:
                del self._answers[message.uid]
        if piece.ended_here:
            to_backend.append(AbortBackendMsg(message.uid))


def run_tokenizer(config: SchedulerConfig, index: int, ready: Callable[[], None]) -> None:
    """Be tokenizer process number `index`, for ever. `ready` is called once messages are taken."""
    worker = TokenizerWorker(load_tokenizer(config.model_folder))
    inlet: ZmqPullQueue[BaseTokenizerMsg] = ZmqPullQueue(
        config.tokenizer_addresses[index], True, reader(TOKENIZER_TYPES)
    )
    backend: ZmqPushQueue[object] = ZmqPushQueue(config.address("backend"), False, pack)
    frontend: ZmqPushQueue[object] = ZmqPushQueue(config.address("frontend"), False, pack)
    ready()
    while True:
        arrived = [one for message in inlet.drain(IDLE_S) for one in each(message, BatchTokenizerMsg)]
        to_backend, to_frontend = worker.process(arrived)
        if to_backend:
            backend.put(one_or_batch(to_backend, BatchBackendMsg))
        if to_frontend:
            frontend.put(one_or_batch(to_frontend, BatchFrontendMsg))
