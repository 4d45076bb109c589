"""Generation without a server: a scheduler whose messages come from a list and whose results go into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypedDict

import torch

from minisgl.core import FinishReason, SamplingParams
from minisgl.distributed.info import DistributedInfo
from minisgl.message.backend import AbortBackendMsg, BaseBackendMsg, UserMsg
from minisgl.message.tokenizer import DetokenizeMsg, TokenLogprobs
from minisgl.scheduler.config import SchedulerConfig
from minisgl.scheduler.scheduler import Scheduler
from minisgl.utils.device import default_device
from minisgl.utils.hf import load_hf_config, load_tokenizer, resolve_model

Prompt = str | Sequence[int]


class Completion(TypedDict):
    """One answer.

    text: without stop texts and what follows them, and without special tokens.
    token_ids: every token that was generated, also those that ended the answer.
    finish_reason: "stop" (end of text, a stop token or a stop text) or "length".
    logprobs: one entry a token if they were asked for, otherwise None.
    prompt_tokens, cached_tokens: length of the prompt, and how much of it was in the cache.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    logprobs: list[TokenLogprobs] | None
    prompt_tokens: int
    cached_tokens: int


@dataclass
class _Answer:
    """What is known of an answer while it is generated."""

    params: SamplingParams
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    last: DetokenizeMsg | None = None


class LLM(Scheduler):
    """`LLM(model_path).generate(prompts, sampling_params)`.

    Invariant: `_answers` holds the requests of the call of `generate` that is running, by number; between
    two calls nothing is on the device.
    """

    def __init__(self, model_path: str, dtype: str | torch.dtype = "auto", **options: Any) -> None:
        """model_path: a model folder, or a repository of the hub.
        dtype: "auto" is the checkpoint's own on a GPU and float32 on the CPU.
        options: any other field of SchedulerConfig (attention_backend, page_size, num_page_override, ...).
        """
        options.setdefault("tp_info", DistributedInfo(0, 1))
        device = options.get("device") or default_device()
        super().__init__(
            SchedulerConfig(
                model_path=str(model_path), dtype=resolve_dtype(dtype, str(model_path), device), **options
            )
        )
        self._tokenizer: Any | None = None
        self._uids = count()
        self._inbox: list[BaseBackendMsg] = []
        self._answers: dict[int, _Answer] = {}
        self._on_token: Callable[[], None] | None = None

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, read when it is first needed: token ids in and out do without."""
        if self._tokenizer is None:
            self._tokenizer = load_tokenizer(self.config.model_folder)
        return self._tokenizer

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        on_token: Callable[[], None] | None = None,
    ) -> list[Completion]:
        """Answers to all prompts, in their order; with n > 1, the n answers of a prompt one after another.

        prompts: texts or lists of token ids, or a single one of either.
        sampling_params: one for all, or one for each; greedy if None.
        on_token: called for each token as it is generated, for progress bars.

        ValueError, before anything runs, that names the prompt which can never be answered, and why.
        """
        many = _as_list(prompts)
        params = _one_each(sampling_params, len(many))
        messages = []
        for index, (prompt, wanted) in enumerate(zip(many, params, strict=True)):
            ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
            input_ids = torch.tensor(ids, dtype=torch.int32)
            if fault := self.refusal(input_ids, wanted.choice(0)):
                raise ValueError(f"prompt {index}: {fault}")
            messages += [UserMsg(next(self._uids), input_ids, wanted.choice(one)) for one in range(wanted.n)]
        self._answers = {message.uid: _Answer(message.sampling_params) for message in messages}
        self._inbox, self._on_token = list(messages), on_token
        try:
            while self._inbox or self.has_work:
                self.step()
        except BaseException:
            self._drain()
            raise
        return [self._completion(self._answers[message.uid]) for message in messages]

    def _drain(self) -> None:
        """After an exception (Ctrl-C among them): end what was begun, so that the next call starts clean."""
        self._inbox = [AbortBackendMsg(uid) for uid in self._answers]
        self._on_token = None
        while self._inbox or self.has_work:
            self.step()

    def _completion(self, answer: _Answer) -> Completion:
        last = answer.last
        assert last is not None
        assert last.finish_reason is not None
        return Completion(
            text=self._text(answer),
            token_ids=answer.token_ids,
            finish_reason=last.finish_reason,
            logprobs=answer.logprobs if answer.params.logprobs is not None else None,
            prompt_tokens=last.prompt_tokens,
            cached_tokens=last.cached_tokens,
        )

    def _text(self, answer: _Answer) -> str:
        # Without clean-up, which some checkpoints ask for: text that is streamed token by token cannot have it.
        text: str = self.tokenizer.decode(
            answer.token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        ends = [at for stop in answer.params.stop if (at := text.find(stop)) >= 0]
        return text[: min(ends)] if ends else text

    # -- the scheduler's messages -------------------------------------------------------------------

    def receive_msg(self, blocking: bool) -> list[BaseBackendMsg]:
        messages, self._inbox = self._inbox, []
        return messages

    def send_result(self, reply: list[DetokenizeMsg]) -> None:
        for message in reply:
            answer = self._answers[message.uid]
            if message.next_token is not None:
                answer.token_ids.append(message.next_token)
                if self._on_token is not None:
                    self._on_token()
            if message.logprobs is not None:
                answer.logprobs.append(message.logprobs)
            if message.finished:
                answer.last = message


def resolve_dtype(wanted: str | torch.dtype, model_path: str, device: torch.device) -> torch.dtype:
    """A dtype by name; "auto" as LLM says. ValueError for what is none."""
    if isinstance(wanted, torch.dtype):
        return wanted
    if wanted == "auto":
        if device.type == "cpu":
            return torch.float32
        raw = load_hf_config(resolve_model(model_path))
        wanted = str(raw.get("dtype") or raw.get("torch_dtype") or "bfloat16")
    dtype = getattr(torch, wanted, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype={wanted!r}: give auto, float32, bfloat16 or float16")
    return dtype


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, str):
        return [prompts]
    if prompts and all(isinstance(one, int) for one in prompts):
        return [prompts]  # type: ignore[list-item]
    return list(prompts)  # type: ignore[arg-type]


def _one_each(params: SamplingParams | Sequence[SamplingParams] | None, number: int) -> list[SamplingParams]:
    if params is None:
        params = SamplingParams()
    if isinstance(params, SamplingParams):
        return [params] * number
    if len(params) != number:
        raise ValueError(f"{len(params)} sampling parameters for {number} prompts: give one, or one for each")
    return list(params)
