"""From logits to the next token of each request.

Random draws use the exponential race: divide each probability by an independent exponential variable and
take the largest. It needs no cumulative sum, and the noise can be drawn for each request on its own: a
request with a seed gets the same tokens whatever batch it is in.

Penalties come first, so that they bear on greedy requests too. The text that they look at is read from the
device when its turn comes: its newest token may not have reached the host yet.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import torch

from minisgl.core import Batch, Req, SamplingParams
from minisgl.utils.device import pin


class Penalised(NamedTuple):
    """A request with penalties: its row of the batch, and its text so far, int32 [tokens], of which the first
    prompt_len are the prompt."""

    row: int
    text: torch.Tensor
    prompt_len: int
    params: SamplingParams


class Logprobs(NamedTuple):
    """Natural logarithms of the model's own probabilities.

    chosen: float32 [requests], of the tokens that were sampled. top: float32 [requests, k], of the k most
    probable ones, largest first; top_ids: int64 [requests, k].
    """

    chosen: torch.Tensor
    top: torch.Tensor
    top_ids: torch.Tensor


@dataclass
class BatchSamplingArgs:
    """How to sample a batch. Tensors have an entry for each row of `rows`, on the device.

    rows: int64, the requests that are sampled; all others are greedy. None if all are greedy.
    temperatures: float32 > 0. top_k: int64, at least 1. top_p, min_p: float32. Each of the last three is
    None if no request asks for it.
    seeds: for each row None, or the number that this very draw is seeded with.
    penalised: requests with penalties, greedy ones among them.
    top_logprobs: how many of the most probable tokens are reported; None if no request wants any report.
    """

    rows: torch.Tensor | None = None
    temperatures: torch.Tensor | None = None
    top_k: torch.Tensor | None = None
    top_p: torch.Tensor | None = None
    min_p: torch.Tensor | None = None
    seeds: tuple[int | None, ...] = ()
    penalised: tuple[Penalised, ...] = ()
    top_logprobs: int | None = None


class Sampler:
    """`seed` starts the draws of requests that have none; ranks must be given the same one.

    Invariant: with one seed, the ranks' generators are in the same state before every step, for they draw
    for the same rows in the same order.
    """

    def __init__(self, device: torch.device, vocab_size: int, seed: int) -> None:
        self.device = device
        self.vocab_size = vocab_size
        self._generator = torch.Generator(device).manual_seed(seed)

    def prepare(self, batch: Batch, token_pool: torch.Tensor | None = None) -> BatchSamplingArgs:
        """Read the batch's sampling parameters, before its forward.

        token_pool: int32 [rows, max_seq_len] on the device, where requests' texts are read when they are
        sampled; without it, from their input_ids.
        """
        params = [req.sampling_params for req in batch.reqs]
        args = BatchSamplingArgs(
            penalised=tuple(
                Penalised(row, _text(req, token_pool, self.device), req.prompt_len, req.sampling_params)
                for row, req in enumerate(batch.reqs)
                if req.sampling_params.has_penalties
            ),
            top_logprobs=max((p.logprobs for p in params if p.logprobs is not None), default=None),
        )
        rows = [row for row, one in enumerate(params) if not one.is_greedy]
        if rows:
            self._prepare_draws(args, rows, [batch.reqs[row] for row in rows])
        return args

    def _prepare_draws(self, args: BatchSamplingArgs, rows: list[int], reqs: list[Req]) -> None:
        params = [req.sampling_params for req in reqs]

        def tensor(values: list[float], dtype: torch.dtype) -> torch.Tensor:
            host = torch.tensor(values, dtype=dtype, pin_memory=pin(self.device))
            return host.to(self.device, non_blocking=True)

        def if_any(values: list[float], neutral: float, dtype: torch.dtype) -> torch.Tensor | None:
            return tensor(values, dtype) if any(value != neutral for value in values) else None

        every = self.vocab_size
        args.rows = tensor(rows, torch.int64)
        args.temperatures = tensor([p.temperature for p in params], torch.float32)
        args.top_k = if_any(
            [every if p.top_k == -1 else min(p.top_k, every) for p in params], every, torch.int64
        )
        args.top_p = if_any([p.top_p for p in params], 1.0, torch.float32)
        args.min_p = if_any([p.min_p for p in params], 0.0, torch.float32)
        args.seeds = tuple(
            None if p.seed is None else _draw_seed(p.seed, req.device_len)
            for p, req in zip(params, reqs, strict=True)
        )

    def sample(self, logits: torch.Tensor, args: BatchSamplingArgs) -> torch.Tensor:
        """logits [requests, vocab_size], left as they are -> int32 [requests]."""
        if args.penalised:
            logits = penalise(logits, args.penalised)
        tokens = logits.argmax(dim=-1)
        if args.rows is not None and args.temperatures is not None:
            scaled = logits[args.rows].float() / args.temperatures.unsqueeze(1)
            probs = filter_probs(scaled.softmax(dim=-1), args.top_k, args.top_p, args.min_p)
            tokens[args.rows] = (probs / self._race(probs.shape, args.seeds)).argmax(dim=-1)
        return tokens.int()

    def logprobs(
        self, logits: torch.Tensor, tokens: torch.Tensor, args: BatchSamplingArgs
    ) -> Logprobs | None:
        """What is reported about `tokens`, int32 [requests], sampled from `logits`; None if nobody asks."""
        if args.top_logprobs is None:
            return None
        every = logits.float().log_softmax(dim=-1)
        top, top_ids = every.topk(min(args.top_logprobs, every.shape[1]), dim=-1)
        return Logprobs(every.gather(1, tokens.long().unsqueeze(1)).squeeze(1), top, top_ids)

    def _race(self, shape: torch.Size, seeds: tuple[int | None, ...]) -> torch.Tensor:
        """Exponential noise [rows, vocab_size], a row from its own seed where it has one."""
        noise = torch.empty(shape, dtype=torch.float32, device=self.device)
        noise.exponential_(generator=self._generator)
        for row, seed in enumerate(seeds):
            if seed is not None:  # on the CPU, so that a seed means the same on every device
                own = torch.empty(shape[1:]).exponential_(generator=torch.Generator().manual_seed(seed))
                noise[row] = own.to(self.device)
        return noise


def penalise(logits: torch.Tensor, penalised: tuple[Penalised, ...]) -> torch.Tensor:
    """A float32 copy of logits [requests, vocab_size] with the penalties of each request taken off its row.

    Repetition counts the prompt's tokens as well; frequency and presence only the answer's.
    """
    logits = logits.float().clone()
    vocab_size = logits.shape[1]
    for row, text, prompt_len, params in penalised:
        mine = logits[row]
        if params.repetition_penalty != 1.0:
            seen = torch.zeros(vocab_size, dtype=torch.bool, device=logits.device)
            seen[text.long()] = True
            factor = torch.where(mine > 0, 1.0 / params.repetition_penalty, params.repetition_penalty)
            mine.mul_(torch.where(seen, factor, 1.0))
        answer = text[prompt_len:].long()
        counts = torch.zeros_like(mine).index_add_(0, answer, torch.ones_like(answer, dtype=mine.dtype))
        mine.sub_(params.frequency_penalty * counts + params.presence_penalty * (counts > 0))
    return logits


def filter_probs(
    probs: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
    min_p: torch.Tensor | None = None,
) -> torch.Tensor:
    """Zero what may not be drawn: top-k first, then top-p over what is left, then min-p. Not renormalised.

    probs: float32 [rows, vocab]; top_k int64, top_p and min_p float32, each [rows]. The token with which the
    sum reaches top_p is kept, so at least one token always is. Of equal probabilities the lower token id
    counts as the larger.
    """
    if top_k is None and top_p is None and min_p is None:
        return probs
    ranked, order = probs.sort(dim=-1, descending=True, stable=True)
    keep = torch.ones_like(ranked, dtype=torch.bool)
    if top_k is not None:
        keep &= torch.arange(ranked.shape[1], device=ranked.device) < top_k.unsqueeze(1)
    if top_p is not None:
        left = ranked * keep
        before = left.cumsum(dim=-1) - left
        keep &= before < top_p.unsqueeze(1) * left.sum(dim=-1, keepdim=True)
    if min_p is not None:
        keep &= ranked >= min_p.unsqueeze(1) * ranked[:, :1]
    keep[:, 0] = True
    return torch.zeros_like(probs).scatter_(1, order, ranked * keep)


def _text(req: Req, token_pool: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """The request's text up to the token that is computed next: a view, whose newest token may be on its way
    still."""
    if token_pool is not None:
        return token_pool[req.table_idx, : req.device_len]
    return req.input_ids[: req.device_len].to(device)


def _draw_seed(seed: int, position: int) -> int:
    """The seed of one token's draw. Hashed, because neighbouring seeds of torch's generator are related."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{position}".encode(), digest_size=4).digest(), "little")
