#!/usr/bin/env python3
"""Measures what DESIGN promises, as ratios within one run: this machine may be slow or busy, but both sides of a ratio
meet the same. A number printed here is never a test's pass mark."""

from __future__ import annotations

import os
import secrets
import statistics
import subprocess
import sys
import time
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Benchmarks. Without a command: all of them."""
    if context.invoked_subcommand is None:
        context.invoke(judge)


def fresh_interpreter_ms() -> float:
    """Wall milliseconds of a Python that imports torch and ends."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True, env={"PATH": os.environ["PATH"]})
    return (time.perf_counter() - start) * 1000


def percentile(values: list[float], part: float) -> float:
    """The value that `part` of all are at most (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]


@main.command()
@click.option("--runs", default=60, show_default=True, help="Verdicts of each kind.")
@click.argument("problems", nargs=-1, type=int)
def judge(runs: int = 60, problems: tuple[int, ...] = ()) -> None:
    """A warm verdict in the full sandbox, against a fresh interpreter that imports torch."""
    from judge.judge import Judge
    from judge.packages import load_packages

    packages = load_packages()
    fresh = [fresh_interpreter_ms() for _ in range(3)]
    click.echo(
        f"fresh interpreter that imports torch: median {statistics.median(fresh):.0f} ms of {len(fresh)}"
    )
    with Judge() as judge:
        for number in problems or (200, 201):
            package = packages[number]
            judge.warm(package)
            programs = {"accepted": package.solution, "wrong": next(iter(package.wrong.values())).source}
            for kind, source in programs.items():
                times = []
                for _ in range(runs):
                    start = time.perf_counter()
                    verdict = judge.judge(package, source.encode(), secrets.token_bytes(16))
                    times.append((time.perf_counter() - start) * 1000)
                    if (verdict.status == "accepted") is not (kind == "accepted"):
                        raise click.ClickException(f"problem {number}: {kind} gave {verdict.status}")
                fresh += [fresh_interpreter_ms()]
                p50, p95 = statistics.median(times), percentile(times, 0.95)
                base = statistics.median(fresh)
                click.echo(
                    f"{number} {kind:<8} {verdict.total} cases, tier {verdict.tier}: "
                    f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, "
                    f"{base / p50:.0f}x faster than a fresh interpreter ({base:.0f} ms)"
                )


if __name__ == "__main__":
    main()
