"""How many tokens a second the engine makes when all requests are there from the start.

python -m minisgl.benchmark.offline --model FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from minisgl.benchmark import Workload, random_workload
from minisgl.core import SamplingParams
from minisgl.llm import LLM


@dataclass(frozen=True)
class OfflineResult:
    """cached_tokens: prompt tokens that needed no computing. seconds: from the first prompt to the last token."""

    requests: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float

    @property
    def output_per_s(self) -> float:
        return self.output_tokens / self.seconds

    @property
    def hit_rate(self) -> float:
        """Share of the prompts' tokens that were found in the cache."""
        return self.cached_tokens / self.prompt_tokens

    def __str__(self) -> str:
        return (
            f"{self.requests} requests, {self.prompt_tokens} prompt tokens ({self.hit_rate:.0%} cached), "
            f"{self.output_tokens} generated in {self.seconds:.2f} s: {self.output_per_s:,.1f} tokens/s"
        )


def run_offline(
    llm: LLM, workload: Workload, *, temperature: float = 0.6, on_token: Callable[[], None] | None = None
) -> OfflineResult:
    """Generate all answers, each to its full length. The engine's first steps are its warm-up's, so that what is
    measured once is not measured here."""
    warm_up(llm)
    params = [
        SamplingParams(temperature=temperature, ignore_eos=True, max_tokens=length)
        for length in workload.output_lens
    ]
    start = time.perf_counter()
    answers = llm.generate(list(workload.prompts), params, on_token)
    seconds = time.perf_counter() - start
    return OfflineResult(
        requests=len(answers),
        prompt_tokens=sum(answer["prompt_tokens"] for answer in answers),
        cached_tokens=sum(answer["cached_tokens"] for answer in answers),
        output_tokens=sum(len(answer["token_ids"]) for answer in answers),
        seconds=seconds,
    )


def warm_up(llm: LLM) -> None:
    """A prefill and two decodes of a prompt that no workload has."""
    llm.generate([[0] * 4], SamplingParams(ignore_eos=True, max_tokens=3))


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    llm = LLM(
        options.model,
        options.dtype,
        attention_backend=options.attention_backend,
        page_size=options.page_size,
        cache_type=options.cache_type,
        max_extend_tokens=options.max_prefill_length,
        overlap=not options.disable_overlap,
        num_page_override=options.num_pages,
        cuda_graph_max_bs=options.cuda_graph_max_bs,
    )
    try:
        workload = random_workload(
            options.num_requests,
            options.input_len,
            options.output_len,
            vocab_size=min(10_001, llm.engine.config.model_config.vocab_size),
            shared_prefix=options.shared_prefix,
            seed=options.seed,
        )
        with progress(sum(workload.output_lens), "tokens") as advance:
            result = run_offline(llm, workload, on_token=advance)
        print(result)
    finally:
        llm.shutdown()
    return 0


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[[], None]]:
    """A bar on stderr, if that is a terminal; gives what moves it on by one."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda: bar.advance(task)


def lengths(text: str) -> tuple[int, int]:
    """ "100:1024" or "128" as bounds, for a command line."""
    low, _, high = text.partition(":")
    try:
        bounds = int(low), int(high or low)
    except ValueError:
        bounds = (0, 0)
    if not 1 <= bounds[0] <= bounds[1]:
        raise argparse.ArgumentTypeError(f"{text!r}: give a length such as 128, or two as in 100:1024")
    return bounds


def workload_arguments(parser: argparse.ArgumentParser, requests: int) -> None:
    add = parser.add_argument
    add("--num-requests", type=int, default=requests, help="(default %(default)s)")
    add(
        "--input-len", type=lengths, default=(100, 1024), metavar="LOW:HIGH", help="tokens (default 100:1024)"
    )
    add(
        "--output-len",
        type=lengths,
        default=(100, 1024),
        metavar="LOW:HIGH",
        help="tokens (default 100:1024)",
    )
    add("--shared-prefix", type=int, default=0, help="tokens that all prompts begin with (default 0)")
    add("--seed", type=int, default=0, help="of the workload (default 0)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m minisgl.benchmark.offline", description="Offline throughput of a model."
    )
    add = parser.add_argument
    add("--model-path", "--model", dest="model", required=True, help="model folder or repository of the hub")
    workload_arguments(parser, requests=256)
    add("--dtype", default="auto")
    add("--attention-backend", "--attn", default="auto")
    add("--page-size", type=int, default=1)
    add("--num-pages", type=int)
    add("--cache-type", default="radix", choices=["radix", "naive"])
    add("--max-prefill-length", type=int, default=8192)
    add("--cuda-graph-max-bs", "--graph", type=int)
    add("--disable-overlap", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
