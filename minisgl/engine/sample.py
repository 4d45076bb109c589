"""From logits to the next token of each request.

Random draws use the exponential race: divide each probability by an independent exponential variable and
take the largest. It needs no cumulative sum, and the noise can be drawn for each request on its own: a
request with a seed gets the same tokens whatever batch it is in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch

from minisgl.core import Batch


@dataclass
class BatchSamplingArgs:
    """How to sample a batch. Tensors have an entry for each row of `rows`, on the device.

    rows: int64, the requests that are sampled; all others are greedy. None if all are greedy.
    temperatures: float32 > 0. top_k: int64, at least 1. top_p, min_p: float32. Each of the last three is
    None if no request asks for it.
    seeds: for each row None, or the number that this very draw is seeded with.
    """

    rows: torch.Tensor | None = None
    temperatures: torch.Tensor | None = None
    top_k: torch.Tensor | None = None
    top_p: torch.Tensor | None = None
    min_p: torch.Tensor | None = None
    seeds: tuple[int | None, ...] = ()


class Sampler:
    """`seed` starts the draws of requests that have none; ranks must be given the same one.

    Invariant: with one seed, the ranks' generators are in the same state before every step, for they draw
    for the same rows in the same order.
    """

    def __init__(self, device: torch.device, vocab_size: int, seed: int) -> None:
        self.device = device
        self.vocab_size = vocab_size
        self._generator = torch.Generator(device).manual_seed(seed)

    def prepare(self, batch: Batch) -> BatchSamplingArgs:
        """Read the batch's sampling parameters, before its forward."""
        rows = [row for row, req in enumerate(batch.reqs) if not req.sampling_params.is_greedy]
        if not rows:
            return BatchSamplingArgs()
        reqs = [batch.reqs[row] for row in rows]
        params = [req.sampling_params for req in reqs]

        def tensor(values: list[float], dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype).to(self.device, non_blocking=True)

        def if_any(values: list[float], neutral: float, dtype: torch.dtype) -> torch.Tensor | None:
            return tensor(values, dtype) if any(value != neutral for value in values) else None

        every = self.vocab_size
        return BatchSamplingArgs(
            rows=tensor(rows, torch.int64),
            temperatures=tensor([p.temperature for p in params], torch.float32),
            top_k=if_any(
                [every if p.top_k == -1 else min(p.top_k, every) for p in params], every, torch.int64
            ),
            top_p=if_any([p.top_p for p in params], 1.0, torch.float32),
            min_p=if_any([p.min_p for p in params], 0.0, torch.float32),
            seeds=tuple(
                None if p.seed is None else _draw_seed(p.seed, req.device_len)
                for p, req in zip(params, reqs, strict=True)
            ),
        )

    def sample(self, logits: torch.Tensor, args: BatchSamplingArgs) -> torch.Tensor:
        """logits [requests, vocab_size] -> int32 [requests]."""
        tokens = logits.argmax(dim=-1)
        if args.rows is not None and args.temperatures is not None:
            scaled = logits[args.rows].float() / args.temperatures.unsqueeze(1)
            probs = filter_probs(scaled.softmax(dim=-1), args.top_k, args.top_p, args.min_p)
            tokens[args.rows] = (probs / self._race(probs.shape, args.seeds)).argmax(dim=-1)
        return tokens.int()

    def _race(self, shape: torch.Size, seeds: tuple[int | None, ...]) -> torch.Tensor:
        """Exponential noise [rows, vocab_size], a row from its own seed where it has one."""
        noise = torch.empty(shape, dtype=torch.float32, device=self.device)
        noise.exponential_(generator=self._generator)
        for row, seed in enumerate(seeds):
            if seed is not None:  # on the CPU, so that a seed means the same on every device
                own = torch.empty(shape[1:]).exponential_(generator=torch.Generator().manual_seed(seed))
                noise[row] = own.to(self.device)
        return noise


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


def _draw_seed(seed: int, position: int) -> int:
    """The seed of one token's draw. Hashed, because neighbouring seeds of torch's generator are related."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{position}".encode(), digest_size=4).digest(), "little")
