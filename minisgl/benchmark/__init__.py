"""Measuring the engine: what it is asked for, and the words in which the result is told.

Times are in seconds, on a clock that does not jump. For one answer:

    sent ........ first ........ last        TTFT = first - sent: how long until something is seen
      |  waiting,   |  the other   |         TPOT = (last - first) / (tokens - 1): how fast it goes on
      |  prefill    |  tokens      |         latency = last - sent

Throughput is about all of them together. A mean hides the few who wait longest, so percentiles are told.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """Prompts of random tokens, and how many tokens each answer has."""

    prompts: tuple[tuple[int, ...], ...]
    output_lens: tuple[int, ...]


def random_workload(
    requests: int,
    input_len: tuple[int, int],
    output_len: tuple[int, int],
    *,
    vocab_size: int = 10_001,
    shared_prefix: int = 0,
    seed: int = 0,
) -> Workload:
    """Lengths are uniform between the two bounds, both included; tokens are below vocab_size.

    shared_prefix: so many tokens, the same for all, come before each prompt's own.

    The default vocabulary, 256 requests and 100 to 1024 tokens both ways give mini-sglang's offline workload:
    133,966 tokens are generated.
    """
    draw = random.Random(seed)
    prompts = [
        [draw.randint(0, vocab_size - 1) for _ in range(draw.randint(*input_len))] for _ in range(requests)
    ]
    output_lens = [draw.randint(*output_len) for _ in range(requests)]
    prefix = [draw.randint(0, vocab_size - 1) for _ in range(shared_prefix)]
    return Workload(tuple(tuple(prefix + prompt) for prompt in prompts), tuple(output_lens))


def poisson_arrivals(rate: float, seed: int = 0) -> Iterator[float]:
    """Seconds from the start at which requests arrive when they know nothing of one another, `rate` a second on
    average: the gaps are exponential. An infinite rate is all at once."""
    draw = random.Random(seed)
    at = 0.0
    while True:
        yield at
        at += 0.0 if math.isinf(rate) else draw.expovariate(rate)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` per cent lie, between neighbours by straight line; ValueError for none."""
    if not values or not 0 <= percent <= 100:
        raise ValueError(
            f"percentile {percent} of {len(values)} values: give 0 to 100, and at least one value"
        )
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
