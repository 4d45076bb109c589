"""The nouns of the engine: a request, a batch of requests, and the context that one forward pass runs in.

Everything else talks in these words, so they live at the bottom of the import graph and know nobody above.

Lengths of a request count tokens, and they are read on a line of token positions:

    0 ........ cached_len ........ device_len ........ max_device_len
    |  KV is in  |  computed by the |  still to be      |
    |  the pool  |  next forward    |  generated        |
                 '--- extend_len ---'--- remain_len ----'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeVar

import torch

if TYPE_CHECKING:
    from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata
    from minisgl.kvcache.base import BaseCacheHandle, BaseKVCachePool
    from minisgl.moe.base import BaseMoEBackend

Phase = Literal["prefill", "decode"]
FinishReason = Literal["stop", "length", "abort", "error"]
MAX_LOGPROBS = 20
_T = TypeVar("_T")


@dataclass(frozen=True)
class SamplingParams:
    """How the next token of a request is chosen, and when the request ends.

    temperature: 0 is greedy; otherwise logits are divided by it.
    top_k: keep the k most probable tokens; -1 keeps all.
    top_p: keep the smallest set of tokens whose probability reaches p; in (0, 1].
    min_p: drop tokens less probable than min_p times the most probable one; in [0, 1).
    seed: draws of this request depend on it alone, whatever else is in the batch; None draws freely.
    max_tokens: how many tokens are generated at most.
    ignore_eos: go on to max_tokens even if the model says that it is done.
    stop: texts that end the answer; neither they nor what follows belongs to the answer's text.
    stop_token_ids: tokens that end the answer, whatever ignore_eos says.
    frequency_penalty: taken off a token's logit for each time the answer has it; in [-2, 2].
    presence_penalty: taken off once if the answer has the token at all; in [-2, 2].
    repetition_penalty: positive logits of tokens that prompt or answer have are divided by it, negative ones
    multiplied; 1 changes nothing.
    logprobs: report the log probability of each token of the answer and of the so many most probable ones;
    None reports nothing. They are the model's own, before penalties, temperature and filters.
    n: answers to one prompt. Whoever takes the prompt makes n requests of it, see `choice`.

    Raises ValueError that names the field, its value and the allowed range.
    """

    temperature: float = 0.0
    top_k: int = -1
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int = 1024
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logprobs: int | None = None
    n: int = 1

    def __post_init__(self) -> None:
        # Callers write one text or a list; the record is frozen and hashable.
        object.__setattr__(self, "stop", (self.stop,) if isinstance(self.stop, str) else tuple(self.stop))
        object.__setattr__(self, "stop_token_ids", tuple(self.stop_token_ids))
        # `not (a <= x)` rather than `x < a`: NaN must be refused as well.
        if not (0.0 <= self.temperature < float("inf")):
            raise ValueError(f"temperature={self.temperature}: give 0 (greedy) or a positive number")
        if self.top_k != -1 and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k}: give -1 (all tokens) or at least 1")
        if not (0.0 < self.top_p <= 1.0):
            raise ValueError(f"top_p={self.top_p}: give a number in (0, 1]")
        if not (0.0 <= self.min_p < 1.0):
            raise ValueError(f"min_p={self.min_p}: give a number in [0, 1)")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens}: give at least 1")
        if any(not text for text in self.stop):
            raise ValueError(f"stop={list(self.stop)}: a stop text has at least one character")
        for name in ("frequency_penalty", "presence_penalty"):
            if not (-2.0 <= getattr(self, name) <= 2.0):
                raise ValueError(f"{name}={getattr(self, name)}: give a number in [-2, 2]")
        if not (0.0 < self.repetition_penalty < float("inf")):
            raise ValueError(f"repetition_penalty={self.repetition_penalty}: give a positive number")
        if self.logprobs is not None and not 0 <= self.logprobs <= MAX_LOGPROBS:
            raise ValueError(f"logprobs={self.logprobs}: give 0 to {MAX_LOGPROBS}, or None for none")
        if self.n < 1:
            raise ValueError(f"n={self.n}: give at least 1")

    @property
    def is_greedy(self) -> bool:
        """True if the most probable token is taken, whatever the other fields say."""
        return self.temperature == 0.0 or self.top_k == 1

    @property
    def has_penalties(self) -> bool:
        return (self.frequency_penalty, self.presence_penalty, self.repetition_penalty) != (0.0, 0.0, 1.0)

    def choice(self, index: int) -> SamplingParams:
        """The parameters of the request that makes answer `index`, 0 .. n - 1, of this prompt.

        Answer 0 keeps the seed; each of the others gets one of its own.
        """
        seed = None if self.seed is None else self.seed + (index << 32)
        return replace(self, n=1, seed=seed)


@dataclass(eq=False)
class Req:
    """One request while it is on the device.

    input_ids: int32 [tokens known so far] on the CPU: the prompt, then each generated token.
    table_idx: its row in the page table.
    cached_len: tokens whose KV is in the pool already, so that they need not be computed.
    output_len: how many tokens may be generated.
    uid: the number that its owner knows it by.
    cache_handle: what it holds in the prefix cache; None outside the scheduler.
    arrival: its place in the order of arrival, which is the order inside every batch.
    prompt_len: tokens it was made with; those behind are the answer's.

    Invariants
    - 0 <= cached_len < device_len <= max_device_len: at least one token is always left to compute, for
      without a query there are no logits to sample from, even if the whole prompt was cached.
    - max_device_len never changes; device_len and cached_len only grow.
    """

    input_ids: torch.Tensor
    table_idx: int
    cached_len: int
    output_len: int
    uid: int
    sampling_params: SamplingParams
    cache_handle: BaseCacheHandle | None
    arrival: int = 0
    prompt_len: int = field(init=False)
    device_len: int = field(init=False)
    max_device_len: int = field(init=False)

    def __post_init__(self) -> None:
        if self.input_ids.is_cuda:
            raise ValueError("Req.input_ids lives on the CPU; the batch carries the device's copy")
        self.prompt_len = self.device_len = len(self.input_ids)
        self.max_device_len = self.device_len + self.output_len
        if not 0 <= self.cached_len < self.device_len:
            raise ValueError(
                f"request {self.uid}: cached_len={self.cached_len} of {self.device_len} tokens; "
                "at least one token has to be computed"
            )

    @property
    def extend_len(self) -> int:
        """Tokens that the next forward computes: its query length."""
        return self.device_len - self.cached_len

    @property
    def remain_len(self) -> int:
        """Tokens that may still be generated."""
        return self.max_device_len - self.device_len

    @property
    def can_decode(self) -> bool:
        """False once the last allowed token has been given its place."""
        return self.remain_len > 0

    def complete_one(self) -> None:
        """After a forward: all its tokens are in the pool, and the sampled one is next to be computed."""
        self.cached_len = self.device_len
        self.device_len += 1

    def append_host(self, next_token: torch.Tensor) -> None:
        """Add a sampled token, int32 [1] on the CPU, to what is known of the text."""
        self.input_ids = torch.cat([self.input_ids, next_token])


@dataclass(eq=False)
class Batch:
    """Requests that go through the model together, all of them in the same phase.

    Born with `reqs` and `phase`; the tensors are filled in before the forward, on the engine's device:

    padded_reqs: `reqs`, then dummies that fill the batch up to a captured CUDA graph's size.
    input_ids: int32 [tokens]: the extend_len new tokens of each padded request, one after another.
    positions: int32 [tokens]: the place of each of those tokens in its own sequence.
    out_loc: int32 [tokens]: the place in the KV pool, in tokens, where the KV of each is written.
    attn_metadata: what the attention backend prepared for this batch.

    Invariant: the order of `reqs` is the order of arrival, and every per-request output follows it.
    """

    reqs: list[Req]
    phase: Phase
    padded_reqs: list[Req] = field(init=False)
    input_ids: torch.Tensor = field(init=False)
    positions: torch.Tensor = field(init=False)
    out_loc: torch.Tensor = field(init=False)
    attn_metadata: BaseAttnMetadata = field(init=False)

    def __post_init__(self) -> None:
        self.padded_reqs = self.reqs

    @property
    def is_prefill(self) -> bool:
        return self.phase == "prefill"

    @property
    def is_decode(self) -> bool:
        return self.phase == "decode"

    @property
    def size(self) -> int:
        """Real requests."""
        return len(self.reqs)

    @property
    def padded_size(self) -> int:
        """Real requests and dummies."""
        return len(self.padded_reqs)


class Context:
    """What layers reach without being handed it: the pool, the page table, the backend, the current batch.

    page_table: int32 [rows, max_seq_len] on the device. `page_table[r, t]` is the place in the KV pool, in
    tokens, of token t of the request in row r: a token position whatever the page size.

    Invariant: a batch is set exactly while `forward_batch` is open, and never two at once.
    """

    def __init__(
        self, page_size: int, page_table: torch.Tensor | None = None, kv_cache: BaseKVCachePool | None = None
    ) -> None:
        self.page_size = page_size
        self._page_table = page_table
        self._kv_cache = kv_cache
        self._attn_backend: BaseAttnBackend | None = None
        self._moe_backend: BaseMoEBackend | None = None
        self._batch: Batch | None = None

    @property
    def page_table(self) -> torch.Tensor:
        return _present(self._page_table, "page_table")

    @page_table.setter
    def page_table(self, value: torch.Tensor) -> None:
        self._page_table = value

    @property
    def kv_cache(self) -> BaseKVCachePool:
        return _present(self._kv_cache, "kv_cache")

    @kv_cache.setter
    def kv_cache(self, value: BaseKVCachePool) -> None:
        self._kv_cache = value

    @property
    def attn_backend(self) -> BaseAttnBackend:
        return _present(self._attn_backend, "attn_backend")

    @attn_backend.setter
    def attn_backend(self, value: BaseAttnBackend) -> None:
        self._attn_backend = value

    @property
    def moe_backend(self) -> BaseMoEBackend:
        return _present(self._moe_backend, "moe_backend")

    @moe_backend.setter
    def moe_backend(self, value: BaseMoEBackend) -> None:
        self._moe_backend = value

    @property
    def batch(self) -> Batch:
        if self._batch is None:
            raise RuntimeError(
                "no batch is in flight: call the model inside `with ctx.forward_batch(batch):`"
            )
        return self._batch

    @contextmanager
    def forward_batch(self, batch: Batch) -> Iterator[Batch]:
        """Make `batch` the one in flight for the length of the block."""
        if self._batch is not None:
            raise RuntimeError("forward_batch is already open: one forward at a time")
        self._batch = batch
        try:
            yield batch
        finally:
            self._batch = None


def _present(value: _T | None, name: str) -> _T:
    if value is None:
        raise RuntimeError(f"the context has no {name} yet: the engine sets it while it is built")
    return value


_GLOBAL_CTX: Context | None = None


def set_global_ctx(ctx: Context) -> None:
    """Install the process's context; RuntimeError if there is one already."""
    global _GLOBAL_CTX
    if _GLOBAL_CTX is not None:
        raise RuntimeError("this process has a context already: call reset_global_ctx() first")
    _GLOBAL_CTX = ctx


def get_global_ctx() -> Context:
    """The process's context; RuntimeError if no engine has been built yet."""
    if _GLOBAL_CTX is None:
        raise RuntimeError(
            "this process has no context yet: build an Engine, or call set_global_ctx(Context(...))"
        )
    return _GLOBAL_CTX


def reset_global_ctx() -> None:
    """Forget the context, so that the next engine of this process can set its own."""
    global _GLOBAL_CTX
    _GLOBAL_CTX = None
