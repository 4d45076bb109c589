"""How a running server feels to those who use it: requests arrive by chance, and each answer is timed as it streams.

    python -m minisgl.benchmark.client --url http://127.0.0.1:1919 --request-rate 4

Any server that streams /v1/completions for prompts of token ids can be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

import httpx2

from minisgl.benchmark import Workload, percentile, poisson_arrivals, random_workload
from minisgl.benchmark.offline import progress, workload_arguments

PERCENTS = (50, 90, 99)


@dataclass
class Timing:
    """One request, in seconds on this process's clock.

    events: when each piece of the answer came. A piece may be more than a token (a character may need several),
    so tokens are counted by the server.
    error: what went wrong, or None; then there are no tokens to speak of.
    """

    sent: float
    events: list[float] = field(default_factory=list)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None

    @property
    def ttft(self) -> float:
        return self.events[0] - self.sent

    @property
    def latency(self) -> float:
        return self.events[-1] - self.sent

    @property
    def tpot(self) -> float | None:
        """None for an answer of one token, which has no second one to wait for."""
        if self.output_tokens < 2:
            return None
        return (self.events[-1] - self.events[0]) / (self.output_tokens - 1)

    @property
    def gaps(self) -> list[float]:
        """Between one piece and the next."""
        return [later - earlier for earlier, later in pairwise(self.events)]


@dataclass(frozen=True)
class Report:
    """What came of a run; `wall` seconds from the first request to the last piece."""

    timings: tuple[Timing, ...]
    wall: float

    @property
    def answered(self) -> list[Timing]:
        return [timing for timing in self.timings if timing.error is None]

    @property
    def output_per_s(self) -> float:
        return sum(timing.output_tokens for timing in self.answered) / self.wall

    @property
    def requests_per_s(self) -> float:
        return len(self.answered) / self.wall

    def goodput(self, ttft_s: float, tpot_s: float) -> float:
        """Requests a second that kept both promises; the others count for nothing."""
        kept = [one for one in self.answered if one.ttft <= ttft_s and (one.tpot or 0.0) <= tpot_s]
        return len(kept) / self.wall

    def rows(self) -> list[tuple[str, list[float]]]:
        """Name and milliseconds: mean, then PERCENTS. Empty if nothing was answered."""
        measured = {
            "TTFT": [one.ttft for one in self.answered],
            "TPOT": [one.tpot for one in self.answered if one.tpot is not None],
            "between pieces": [gap for one in self.answered for gap in one.gaps],
            "latency": [one.latency for one in self.answered],
        }
        return [
            (name, [1000 * value for value in (sum(v) / len(v), *(percentile(v, p) for p in PERCENTS))])
            for name, v in measured.items()
            if v
        ]

    def __str__(self) -> str:
        prompt_tokens = sum(one.prompt_tokens for one in self.answered)
        cached = sum(one.cached_tokens for one in self.answered) / prompt_tokens if prompt_tokens else 0.0
        lines = [
            f"{len(self.answered)} of {len(self.timings)} requests answered in {self.wall:.2f} s: "
            f"{self.requests_per_s:.2f} requests/s, {self.output_per_s:,.1f} tokens/s, "
            f"{prompt_tokens} prompt tokens ({cached:.0%} cached)",
            f"{'ms':<15}{'mean':>9}" + "".join(f"{f'p{percent}':>9}" for percent in PERCENTS),
        ]
        lines += [
            f"{name:<15}" + "".join(f"{value:>9.1f}" for value in values) for name, values in self.rows()
        ]
        errors = sorted({one.error for one in self.timings if one.error is not None})
        return "\n".join(lines + [f"not answered: {error}" for error in errors])


async def run_client(
    url: str,
    workload: Workload,
    *,
    rate: float = math.inf,
    max_concurrency: int | None = None,
    seed: int = 0,
    timeout_s: float = 600.0,
    on_done: Callable[[], None] = lambda: None,
) -> Report:
    """Send the workload's requests, `rate` a second by Poisson arrivals, and time their answers.

    max_concurrency: so many are open at once at most; a request that has to wait for that is timed from when it
    is sent. A request that fails is in the report with its error; none is sent again.
    """
    slots = asyncio.Semaphore(max_concurrency or len(workload.prompts) or 1)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(base_url=url, timeout=timeout_s, limits=limits, trust_env=False) as client:
        start = time.perf_counter()

        async def one(at: float, prompt: tuple[int, ...], output_len: int) -> Timing:
            await asyncio.sleep(max(0.0, start + at - time.perf_counter()))
            async with slots:
                timing = await _time(client, prompt, output_len)
            on_done()
            return timing

        arrivals = islice(poisson_arrivals(rate, seed), len(workload.prompts))
        asked = zip(arrivals, workload.prompts, workload.output_lens, strict=True)
        timings = await asyncio.gather(*(one(*request) for request in asked))
        return Report(tuple(timings), time.perf_counter() - start)


async def _time(client: httpx2.AsyncClient, prompt: tuple[int, ...], output_len: int) -> Timing:
    body = {
        "prompt": list(prompt),
        "max_tokens": output_len,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    timing = Timing(sent=time.perf_counter())
    try:
        async with client.stream("POST", "/v1/completions", json=body) as response:
            if response.status_code != 200:
                content = (await response.aread()).decode(errors="replace")
                timing.error = f"status {response.status_code}: {content[:300]}"
                return timing
            ended = False
            async for line in response.aiter_lines():
                now = time.perf_counter()
                data = line.removeprefix("data: ")
                if data == "[DONE]":
                    ended = True
                elif data:
                    _take(timing, json.loads(data), now)
            if not ended and timing.error is None:
                timing.error = "the answer broke off"
    except (httpx2.HTTPError, json.JSONDecodeError) as error:
        timing.error = f"{type(error).__name__}: {error}"
    return timing


def _take(timing: Timing, event: dict[str, object], now: float) -> None:
    if event.get("error"):
        timing.error = json.dumps(event["error"], ensure_ascii=False)
    if event.get("choices"):
        timing.events.append(now)
    if isinstance(usage := event.get("usage"), dict):
        timing.prompt_tokens = usage["prompt_tokens"]
        timing.output_tokens = usage["completion_tokens"]
        timing.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    workload = random_workload(
        options.num_requests,
        options.input_len,
        options.output_len,
        vocab_size=options.vocab_size,
        shared_prefix=options.shared_prefix,
        seed=options.seed,
    )
    with progress(options.num_requests, "requests") as advance:
        report = asyncio.run(
            run_client(
                options.url,
                workload,
                rate=options.request_rate,
                max_concurrency=options.max_concurrency,
                seed=options.seed,
                on_done=advance,
            )
        )
    print(report)
    if options.slo is not None:
        ttft, tpot = options.slo
        good = report.goodput(ttft / 1000, tpot / 1000)
        print(f"goodput: {good:.2f} requests/s with TTFT <= {ttft:g} ms and TPOT <= {tpot:g} ms")
    return 0 if len(report.answered) == len(report.timings) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m minisgl.benchmark.client", description="Times the answers of a running server."
    )
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:1919", help="(default %(default)s)")
    add(
        "--request-rate",
        type=_rate,
        default=math.inf,
        help="requests a second, or inf: all at once (default)",
    )
    add("--max-concurrency", type=int, help="requests open at once (default: no limit)")
    add(
        "--vocab-size", type=int, default=10_001, help="prompts' token ids are below it (default %(default)s)"
    )
    add(
        "--slo", type=float, nargs=2, metavar=("TTFT_MS", "TPOT_MS"), help="also tell the goodput under these"
    )
    workload_arguments(parser, requests=100)
    return parser


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not rate > 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number above 0, or inf")
    return rate


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
