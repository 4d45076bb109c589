"""The engine against transformers, on the CPU: SmolLM2 in float32, both in this process, taking turns.

Prompts are random tokens, new ones for every run, so that nothing is in a cache, and all requests of a batch
start together. Three figures, each the median over the runs, and of the ratio run by run:

- prefill: prompt tokens over the time to the first token;
- decode: new tokens behind the first over the time that they take, which is the time of a whole generation
  less that of one that ends at the first token;
- shared prefix: new tokens over the wall time of everything, prompts included, when the prompts begin with the
  same 512 tokens, which are new as well: the cache is cold.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

BATCHES = (1, 8, 16)
PROMPT_TOKENS = 128
NEW_TOKENS = 64
SHARED_TOKENS, OWN_TOKENS, SHARED_BATCH = 512, 16, 16

Prompts = list[list[int]]
# Prompts, and how many tokens to generate for each -> the tokens.
Generate = Callable[[Prompts, int], list[list[int]]]


@click.command()
@click.option("--runs", default=3, show_default=True, help="Runs of each kind; more on a busy machine.")
@click.option(
    "--batch", "batches", multiple=True, type=int, help="Batch sizes; 1, 8 and 16 if none is given."
)
@click.option("--threads", type=int, help="Threads of torch; as many as it chooses if left out.")
def engine(runs: int = 3, batches: tuple[int, ...] = (), threads: int | None = None) -> None:
    """Prefill, decode and a shared prefix: our engine against transformers, on SmolLM2."""
    # Read when torch is loaded. Threads that spin while they wait make both sides unpredictable on a machine
    # where something else runs too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from tools.models import cached

    if threads is not None:
        torch.set_num_threads(threads)
    folder = cached("smollm2")
    click.echo(
        f"SmolLM2-135M float32, {torch.get_num_threads()} threads, {runs} runs, "
        f"prompts of {PROMPT_TOKENS} tokens, {NEW_TOKENS} new tokens"
    )
    theirs, vocabulary = _transformers(folder)
    sizes = batches or BATCHES
    with _ours(folder, max(*sizes, SHARED_BATCH)) as ours:
        draw = random.Random(0)

        def prompts(size: int, length: int) -> Prompts:
            return [[draw.randrange(vocabulary) for _ in range(length)] for _ in range(size)]

        # The first call of each allocates and chooses kernels.
        for generate in (ours, theirs):
            generate(prompts(2, 8), 4)
        click.echo(f"{'':<22}{'engine':>12}{'transformers':>14}{'ratio':>8}")
        for size in sizes:
            _batch(size, runs, prompts, ours, theirs)
        _shared(runs, prompts, ours, theirs)


def _batch(
    size: int, runs: int, prompts: Callable[[int, int], Prompts], ours: Generate, theirs: Generate
) -> None:
    prefill: list[tuple[float, float]] = []
    decode: list[tuple[float, float]] = []
    equal = 0
    for run in range(runs):
        rates = {}
        both = prompts(size, PROMPT_TOKENS), prompts(size, PROMPT_TOKENS)
        answers = []
        for generate in _in_turn(run, ours, theirs):
            first, _ = _timed(generate, both[0], 1)
            whole, tokens = _timed(generate, both[1], NEW_TOKENS)
            answers.append(tokens)
            rates[generate] = (
                size * PROMPT_TOKENS / first,
                size * (NEW_TOKENS - 1) / (whole - first),
            )
        equal += sum(a == b for a, b in zip(*answers, strict=True))
        prefill.append((rates[ours][0], rates[theirs][0]))
        decode.append((rates[ours][1], rates[theirs][1]))
    _report(f"batch {size}: prefill", prefill)
    _report(f"batch {size}: decode", decode, f"  {equal} of {size * runs} answers equal")


def _shared(runs: int, prompts: Callable[[int, int], Prompts], ours: Generate, theirs: Generate) -> None:
    rates: list[tuple[float, float]] = []
    for run in range(runs):
        prefix = prompts(1, SHARED_TOKENS)[0]
        both = [prefix + own for own in prompts(SHARED_BATCH, OWN_TOKENS)]
        seconds = {}
        for generate in _in_turn(run, ours, theirs):
            seconds[generate], _ = _timed(generate, both, NEW_TOKENS)
        new = SHARED_BATCH * NEW_TOKENS
        rates.append((new / seconds[ours], new / seconds[theirs]))
    _report(f"{SHARED_BATCH} x {SHARED_TOKENS} shared: all", rates)


def _in_turn(run: int, ours: Generate, theirs: Generate) -> tuple[Generate, Generate]:
    """Who goes first changes from run to run, in case the machine grows busier or warmer."""
    return (ours, theirs) if run % 2 == 0 else (theirs, ours)


def _timed(generate: Generate, prompts: Prompts, new_tokens: int) -> tuple[float, list[list[int]]]:
    begun = time.perf_counter()
    answers = generate(prompts, new_tokens)
    seconds = time.perf_counter() - begun
    if any(len(answer) != new_tokens for answer in answers):
        raise click.ClickException(f"an answer has not {new_tokens} tokens: the rates would mean nothing")
    return seconds, answers


def _report(what: str, rates: list[tuple[float, float]], more: str = "") -> None:
    ours, theirs = (statistics.median(side) for side in zip(*rates, strict=True))
    ratio = statistics.median(a / b for a, b in rates)
    click.echo(f"{what:<22}{ours:>8.1f} t/s{theirs:>10.1f} t/s{ratio:>7.2f}x{more}")


@contextmanager
def _ours(folder: Path, requests: int) -> Iterator[Generate]:
    import torch

    from minisgl.core import SamplingParams
    from minisgl.llm import LLM

    longest = max(PROMPT_TOKENS, SHARED_TOKENS + OWN_TOKENS) + NEW_TOKENS
    llm = LLM(
        str(folder),
        dtype="float32",
        device=torch.device("cpu"),
        max_running_req=requests,
        num_page_override=requests * longest,
    )

    def generate(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        answers = llm.generate(prompts, SamplingParams(max_tokens=new_tokens, ignore_eos=True))
        return [answer["token_ids"] for answer in answers]

    try:
        yield generate
    finally:
        llm.shutdown()


def _transformers(folder: Path) -> tuple[Generate, int]:
    import torch

    from tools.models import load_reference

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    model: Any = load_reference(folder)

    def generate(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        ids = torch.tensor(prompts)
        with torch.inference_mode():
            out = model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                min_new_tokens=new_tokens,
                max_new_tokens=new_tokens,
            )
        answers: list[list[int]] = out[:, ids.shape[1] :].tolist()
        return answers

    return generate, int(model.config.vocab_size)
