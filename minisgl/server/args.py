"""What the server is asked for: by the command line once, and by the body of every request.

Flags have the names of mini-sglang's; each sets one field of the configuration. Fields of a request are honoured
or refused, never ignored: an answer that silently disregards what was asked for is wrong in a way that nobody
sees.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from minisgl.attention import ATTENTION_BACKENDS
from minisgl.core import MAX_LOGPROBS, SamplingParams
from minisgl.distributed.info import DistributedInfo
from minisgl.env import VARIABLES
from minisgl.kvcache import PREFIX_CACHES
from minisgl.llm.llm import resolve_dtype
from minisgl.moe import MOE_BACKENDS
from minisgl.scheduler.config import SchedulerConfig

Prompt = str | list[dict[str, Any]] | tuple[int, ...]

PORT = 1919

MAX_CHOICES = 128
MAX_STOPS, MAX_STOP_CHARACTERS = 16, 256

# Fields of OpenAI's protocol that ask for something we do not have, and the values with which they ask for
# nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "echo": (False,),
    "function_call": ("none",),
    "functions": ([],),
    "logit_bias": ({},),
    "metadata": ({},),
    "modalities": (["text"],),
    "parallel_tool_calls": (True, False),  # there are no tools to call
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
}


# -- the command line ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServerArgs(SchedulerConfig):
    """host, port: where HTTP is served; port 0 is one that is free.
    served_model_name: what requests call the model; model_path if None.
    max_queued_requests: requests that may wait beside max_running_req running ones before more are turned away.
    startup_timeout, reply_timeout: seconds that the processes have until they are ready, and that one answer's
    next piece may take.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    served_model_name: str | None = None
    max_queued_requests: int = 1024
    startup_timeout: float = 600.0
    reply_timeout: float = 600.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.port < 2**16:
            raise ValueError(f"ServerArgs.port={self.port}: give 0 to 65535")
        if self.max_queued_requests < 0:
            raise ValueError(f"ServerArgs.max_queued_requests={self.max_queued_requests}: give 0 or more")
        for name in ("startup_timeout", "reply_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"ServerArgs.{name}={getattr(self, name)}: give more than 0")

    @property
    def model_name(self) -> str:
        return self.served_model_name or self.model_path

    @property
    def max_open_requests(self) -> int:
        """Requests that the server takes on at once, running or waiting."""
        return self.max_running_req + self.max_queued_requests


def parse_args(argv: Sequence[str]) -> tuple[ServerArgs, bool]:
    """The configuration, and whether a shell is wanted instead of a server.

    Exits with a message, as command lines do, if a flag or its value is wrong.
    """
    parser = _parser()
    given = vars(parser.parse_args(argv))
    shell = given.pop("shell_mode")
    if shell:  # one person at a time
        given["max_running_req"] = 1
        given["cuda_graph_max_bs"] = 1 if given["cuda_graph_max_bs"] is None else given["cuda_graph_max_bs"]
    try:
        given["tp_info"] = DistributedInfo(0, given.pop("tp_size"))
        # Not default_device: this process must not open the GPU, which is for those that compute.
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        given["dtype"] = resolve_dtype(given["dtype"], given["model_path"], device)
        config = ServerArgs(**given)
        _ = (
            config.max_seq_len
        )  # reads the model's configuration: better now than in a process that is to load it
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    return config, shell


def _parser() -> argparse.ArgumentParser:
    default = ServerArgs
    parser = argparse.ArgumentParser(
        prog="python -m minisgl",
        description="Serve a model over HTTP, or talk to it in a shell.",
        epilog="Environment: " + "; ".join(f"{name}: {what}" for name, what in VARIABLES.items()),
    )
    add = parser.add_argument
    add("--model-path", "--model", required=True, help="model folder, or a repository of the hub")
    add("--served-model-name", help="what requests call the model (default: the model path)")
    add("--dtype", default="auto", choices=["auto", "float16", "bfloat16", "float32"],
        help="of weights and KV; auto: the checkpoint's on a GPU, float32 on the CPU")  # fmt: skip
    add("--tensor-parallel-size", "--tp-size", "--tp", type=int, default=1, dest="tp_size",
        help="processes that share the model (default %(default)s)")  # fmt: skip
    add("--attention-backend", "--attn", default=default.attention_backend, type=_attention_backend,
        help=f"auto, {', '.join(ATTENTION_BACKENDS.names())}, or two as in fa,fi: prefill, decode "
        "(default %(default)s)")  # fmt: skip
    add("--moe-backend", default=default.moe_backend, choices=["auto", *MOE_BACKENDS.names()],
        help="for models with experts (default %(default)s)")  # fmt: skip
    add("--page-size", type=int, default=default.page_size, help="tokens a page of the KV pool (%(default)s)")
    add("--num-pages", type=int, dest="num_page_override",
        help="pages of the KV pool (default: as many as fit)")  # fmt: skip
    add("--memory-ratio", type=float, default=default.memory_ratio,
        help="share of the free memory for weights and KV (default %(default)s)")  # fmt: skip
    add("--cache-type", default=default.cache_type, choices=PREFIX_CACHES.names(),
        help="the prefix cache (default %(default)s)")  # fmt: skip
    add("--max-running-requests", type=int, default=default.max_running_req, dest="max_running_req",
        help="requests on the device at once (default %(default)s)")  # fmt: skip
    add("--max-queued-requests", type=int, default=default.max_queued_requests,
        help="requests that may wait beside them; more get status 429 (default %(default)s)")  # fmt: skip
    add("--max-seq-len-override", type=int,
        help="tokens of a request, prompt and answer (default: the model's limit)")  # fmt: skip
    add("--max-prefill-length", "--max-extend-length", type=int, default=default.max_extend_tokens,
        dest="max_extend_tokens", help="prompt tokens computed in one batch (default %(default)s)")  # fmt: skip
    add("--cuda-graph-max-bs", "--graph", type=int,
        help="largest batch that decoding is captured for; 0: none")  # fmt: skip
    add("--num-tokenizer", "--tokenizer-count", type=int, default=default.num_tokenizer,
        help="processes that tokenize and detokenize, each for its share of requests; 0 means 1")  # fmt: skip
    add("--host", default=default.host, help="where to serve (default %(default)s)")
    add("--port", type=int, default=default.port, help="0: one that is free (default %(default)s)")
    add("--startup-timeout", type=float, default=default.startup_timeout,
        help="seconds until every process must be ready (default %(default)s)")  # fmt: skip
    add("--reply-timeout", type=float, default=default.reply_timeout,
        help="seconds that an answer's next piece may take, waiting included (default %(default)s)")  # fmt: skip
    add("--shell-mode", "--shell", action="store_true", help="talk to the model here, without a server")
    return parser


def _attention_backend(name: str) -> str:
    known = ["auto", *ATTENTION_BACKENDS.names()]
    parts = name.split(",")
    if len(parts) > 2 or any(part.strip() not in known for part in parts):
        raise argparse.ArgumentTypeError(
            f"{name!r}: give one of {', '.join(known)}, or two of them as in fa,fi (prefill, decode)"
        )
    return name


class RequestFault(Exception):
    """An answer other than 200: status, a sentence, and the field that it is about."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


# -- the body of a request -------------------------------------------------------------------------------


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")
    include_usage: bool = False


class SamplingFields(BaseModel):
    """Fields that every route takes. None, as absent, is the route's default."""

    model_config = ConfigDict(extra="forbid")
    default_temperature: ClassVar[float] = 1.0
    default_max_tokens: ClassVar[int] = 1024

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None  # a label for the sender's own accounts; it asks for nothing
    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: Annotated[int, Field(ge=-(2**62), lt=2**62)] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_neutral(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kept = {}
        for name, value in data.items():
            if name in cls.model_fields or name not in NEUTRAL:
                kept[name] = value
            elif value is not None and value not in NEUTRAL[name]:
                raise ValueError(f"{name}={json.dumps(value)[:80]} is not supported: leave {name} out")
        return kept

    @field_validator("stop")
    @classmethod
    def _few_short_stops(cls, stop: str | list[str] | None) -> str | list[str] | None:
        stops = [stop] if isinstance(stop, str) else stop or []
        if len(stops) > MAX_STOPS or any(len(text) > MAX_STOP_CHARACTERS for text in stops):
            raise ValueError(f"give at most {MAX_STOPS} texts of at most {MAX_STOP_CHARACTERS} characters")
        return stop

    @property
    def wanted_logprobs(self) -> int | None:
        return None

    @property
    def wanted_tokens(self) -> int | None:
        return self.max_tokens

    @property
    def template_args(self) -> dict[str, Any]:
        return {}

    def prompts(self) -> list[Prompt]:
        raise NotImplementedError

    def params(self) -> SamplingParams:
        """RequestFault 400 for values out of range."""
        given = {
            "temperature": self.default_temperature if self.temperature is None else self.temperature,
            "max_tokens": self.default_max_tokens if self.wanted_tokens is None else self.wanted_tokens,
            "logprobs": self.wanted_logprobs,
        }
        for name in ("top_k", "top_p", "min_p", "seed", "n", "stop", "stop_token_ids", "ignore_eos",
                     "frequency_penalty", "presence_penalty", "repetition_penalty"):  # fmt: skip
            if (value := getattr(self, name)) is not None:
                given[name] = value
        if self.stream_options is not None and not self.stream:
            raise RequestFault(400, "stream_options is for answers with stream=true", "stream_options")
        try:
            return SamplingParams(**given)
        except ValueError as error:
            raise RequestFault(400, str(error), str(error).partition("=")[0]) from error


class GenerateRequest(SamplingFields):
    """mini-sglang's own: greedy, and streamed unless it says otherwise."""

    default_temperature: ClassVar[float] = 0.0
    prompt: str | list[int]
    stream: bool = True
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None

    @property
    def wanted_logprobs(self) -> int | None:
        return self.logprobs

    def prompts(self) -> list[Prompt]:
        return [self.prompt if isinstance(self.prompt, str) else tuple(self.prompt)]


class CompletionRequest(SamplingFields):
    default_max_tokens: ClassVar[int] = 16
    prompt: str | list[str] | list[int] | list[list[int]]
    logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None

    @property
    def wanted_logprobs(self) -> int | None:
        return self.logprobs

    def prompts(self) -> list[Prompt]:
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [tuple(self.prompt)]  # type: ignore[arg-type]
        if not 0 < len(self.prompt) <= MAX_CHOICES:
            raise RequestFault(400, f"prompt: give 1 to {MAX_CHOICES} prompts", "prompt")
        return [one if isinstance(one, str) else tuple(one) for one in self.prompt]  # type: ignore[arg-type]


class TextPart(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="forbid")
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart]

    def plain(self) -> dict[str, Any]:
        content = self.content
        return {
            "role": self.role,
            "content": content if isinstance(content, str) else "".join(part.text for part in content),
        }


class ChatRequest(SamplingFields):
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> ChatRequest:
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("top_logprobs is for answers with logprobs=true")
        if None not in (self.max_tokens, self.max_completion_tokens):
            raise ValueError("max_tokens and max_completion_tokens mean the same: give one")
        return self

    @property
    def wanted_logprobs(self) -> int | None:
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def wanted_tokens(self) -> int | None:
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def template_args(self) -> dict[str, Any]:
        return self.chat_template_kwargs or {}

    def prompts(self) -> list[Prompt]:
        return [[message.plain() for message in self.messages]]
