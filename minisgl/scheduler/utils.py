"""What the scheduler's parts hand one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from minisgl.core import Batch, FinishReason, Req, SamplingParams
from minisgl.utils.misc import div_ceil

if TYPE_CHECKING:
    from minisgl.engine import ForwardOutput
    from minisgl.engine.sample import BatchSamplingArgs


class ChunkedReq(Req):
    """The beginning of a prompt, as a request of its own: computed to fill the pool, never sampled from.

    Its input_ids end where the chunk does. The next chunk, or the request itself, takes over its row, pages
    and cache handle.
    """

    @property
    def can_decode(self) -> bool:
        return False

    def append_host(self, next_token: torch.Tensor) -> None:
        raise RuntimeError(f"request {self.uid}: a chunk of a prompt has no next token")


@dataclass(eq=False)
class PendingReq:
    """A request whose prompt is not on the device yet, or not all of it.

    output_len: tokens that it may generate, cut to what fits.
    arrival: its number in the order of arrival.
    chunk: the latest chunk of its prompt that was launched; None before the first.
    """

    uid: int
    input_ids: torch.Tensor
    sampling_params: SamplingParams
    output_len: int
    arrival: int
    chunk: ChunkedReq | None = None

    @property
    def kv_tokens(self) -> int:
        """Tokens whose KV will be in the pool in the end; the last one sampled is never computed."""
        return len(self.input_ids) + self.output_len - 1


class InFlight(NamedTuple):
    """A batch that was launched, kept until its tokens have been looked at.

    Every tensor that its forward reads is kept with it, `places` (where tokens are read and written in the token
    pool) for no other reason: they were made on the scheduler's stream, and if they were let go now, the
    allocator would give their memory to the next thing made there, while the engine's stream still reads.
    """

    batch: Batch
    args: BatchSamplingArgs
    output: ForwardOutput
    places: tuple[torch.Tensor, ...]


def pages_to_come(req: Req, page_size: int) -> int:
    """Pages that a request on the device will still ask for."""
    return div_ceil(req.max_device_len - 1, page_size) - div_ceil(req.cached_len, page_size)


class FinishRules:
    """When an answer ends.

    eos: the model's end-of-text tokens.
    tokenizer: needed only for requests with stop texts; None refuses them.
    """

    def __init__(self, eos: frozenset[int], tokenizer: Any | None) -> None:
        self.eos = eos
        self.tokenizer = tokenizer

    def reason(self, req: Req, token: int) -> FinishReason | None:
        """Why `req`, to which `token` has just been appended, ends here; None if it goes on.

        Counts tokens that the host knows: the device may be a step ahead.
        """
        params = req.sampling_params
        if (token in self.eos and not params.ignore_eos) or token in params.stop_token_ids:
            return "stop"
        if params.stop and self._has_stop_text(req):
            return "stop"
        return "length" if len(req.input_ids) >= req.max_device_len else None

    def _has_stop_text(self, req: Req) -> bool:
        assert self.tokenizer is not None
        # A character takes at most 4 tokens (one a byte), and the first of the tail may be cut off.
        longest = max(len(text) for text in req.sampling_params.stop)
        first = max(req.prompt_len, len(req.input_ids) - 4 * (longest + 1))
        tail = self.tokenizer.decode(
            req.input_ids[first:].tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return any(text in tail for text in req.sampling_params.stop)
