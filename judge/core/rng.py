"""Randomness for cases: a function of a 128-bit seed alone, the same in every Python, every torch, every year."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Rng:
    """Draws from `random.Random.getrandbits`, whose stream Python guarantees for a given seed (its other methods may
    change between versions, so everything here is built on that one)."""

    def __init__(self, seed: bytes, stream: str = "") -> None:
        self._random = random.Random(int.from_bytes(seed + stream.encode(), "big"))

    def below(self, n: int) -> int:
        """An integer in 0..n-1, each equally likely."""
        if n <= 0:
            raise ValueError(f"below({n}): n must be positive")
        bits = n.bit_length()
        while True:
            value = self._random.getrandbits(bits)
            if value < n:
                return value

    def integer(self, low: int, high: int) -> int:
        """An integer in low..high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, numerator: int, denominator: int) -> bool:
        """True with probability numerator / denominator."""
        return self.below(denominator) < numerator

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A new list with the same elements in random order (Fisher and Yates)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """k different elements, in random order."""
        if k > len(items):
            raise ValueError(f"sample of {k} from {len(items)}")
        return self.shuffled(items)[:k]

    def uniform(self) -> float:
        """A float in [0, 1) with 53 random bits."""
        return self._random.getrandbits(53) / (1 << 53)

    def floats(self, n: int) -> list[float]:
        """n floats, roughly normal with mean 0 and variance 1 (a sum of twelve uniforms, less 6)."""
        return [sum(self.uniform() for _ in range(12)) - 6.0 for _ in range(n)]
