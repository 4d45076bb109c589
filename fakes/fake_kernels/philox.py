"""Random numbers that depend on nothing but (seed, offset, row): Philox4x32-10, a counter-based generator.

The GPU's kernels start a Philox stream per output row (sampling.cuh: curand_init(seed, row, offset)), so
that rows, seeds and offsets don't influence each other. The same holds here, and a call can be repeated.
That a fake draws the very token that a GPU draws is not promised.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

_LOW = np.uint64(0xFFFFFFFF)
_BITS = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_ROUNDS = 10


def uniform(seeds: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """A number in (0, 1] for each row: float64 [rows]. seeds, offsets: integers [rows]; row i has stream i."""
    return next(uniforms(seeds, offsets))


def uniforms(seeds: torch.Tensor, offsets: torch.Tensor) -> Iterator[torch.Tensor]:
    """What `uniform` gives, and then the next number of each stream, without end."""
    seed = _unsigned(seeds)
    offset = _unsigned(offsets)
    while True:
        yield _drawn(seed, offset)
        offset = offset + np.uint64(1)


def _drawn(seed: np.ndarray, offset: np.ndarray) -> torch.Tensor:
    stream = np.arange(len(seed), dtype=np.uint64)
    block = offset >> np.uint64(2)
    counter = [block & _LOW, block >> _BITS, stream & _LOW, stream >> _BITS]
    words = np.stack(_philox(counter, [seed & _LOW, seed >> _BITS]))
    chosen = words[(offset & np.uint64(3)).astype(np.int64), np.arange(len(seed))]
    return torch.from_numpy((chosen.astype(np.float64) + 0.5) * 2.0**-32)


def _philox(counter: list[np.ndarray], key: list[np.ndarray]) -> list[np.ndarray]:
    """Ten rounds: four counter words and two key words of 32 bits (in uint64), to four words."""
    for _ in range(_ROUNDS):
        first, second = (counter[0] * _MULTIPLIERS[0], counter[2] * _MULTIPLIERS[1])
        counter = [
            (second >> _BITS) ^ counter[1] ^ key[0],
            second & _LOW,
            (first >> _BITS) ^ counter[3] ^ key[1],
            first & _LOW,
        ]
        key = [(word + step) & _LOW for word, step in zip(key, _KEY_STEPS, strict=True)]
    return counter


def _unsigned(values: torch.Tensor) -> np.ndarray:
    return values.cpu().contiguous().view(torch.int64).numpy().view(np.uint64)
