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
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from judge.judge import Judge
    from judge.packages import Package

ROOT = Path(__file__).resolve().parent.parent
ONE_LINE = 40  # `align_down`
sys.path.insert(0, str(ROOT))

from tools.bench_engine import engine
from tools.bench_tp import tp


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Benchmarks. Without a command: all of them."""
    if context.invoked_subcommand is None:
        context.invoke(judge)
        context.invoke(engine)


main.add_command(engine)
main.add_command(tp)


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
        for number in problems or [n for n in (ONE_LINE, 200, 201) if n in packages]:
            package = packages[number]
            judge.warm(package)
            click.echo(f"{number}: a running child has {child_memory_mb(judge, package):.1f} MB of its own")
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


def child_memory_mb(judge: Judge, package: Package) -> float:
    """What one child holds for itself after loading the reference and answering all seed-independent cases; the rest it
    shares with its zygote."""
    from judge.staging import LOAD_MS, child_limits, load_frame

    prepared = judge._prepare(package)
    child = prepared.stage.spawn(child_limits(package))
    try:
        child.exchange(load_frame(package, package.solution), LOAD_MS)
        for frame in prepared.static_frames:
            judge.run_case(package, child, frame)
        # Private_Dirty: RssAnon would count the pages that it still shares with its zygote.
        rows = Path(f"/proc/{child._pid}/smaps_rollup").read_text().splitlines()  # type: ignore[union-attr]
        return sum(int(row.split()[1]) for row in rows if row.startswith("Private_Dirty:")) / 1024
    finally:
        judge.retire(child, prepared.stage)


def memory_mb(pid: int) -> float:
    """Resident megabytes of a process that are its own (RssAnon)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


@main.command()
@click.option("--runs", default=2000, show_default=True, help="Submissions, hostile and good ones mixed.")
@click.option("--tier", type=click.Choice(["strong", "medium"]), default="strong", show_default=True)
def soak(runs: int, tier: str) -> None:
    """Many hostile and good submissions: memory and descriptors of the judge's processes, before and after."""
    from judge.judge import Judge
    from judge.packages import load_package

    folder = ROOT / "tests" / "exploits"
    package = load_package(folder / "problem")
    good = package.solution.encode()
    # Those that end by a time limit are left out: two thousand of them would take hours and show nothing more.
    slow = ("08", "09", "36", "44", "48", "53", "58", "74", "76", "84", "96", "97", "52")
    hostile = [
        p.read_bytes() for p in sorted((folder / "submissions").glob("*.py")) if p.name[:2] not in slow
    ]

    def figures(judge: Judge) -> dict[str, tuple[float, int]]:
        pids = {
            "judge": os.getpid(),
            "checker": judge._checker._process.pid,  # type: ignore[union-attr]
            "zygote": judge._submissions._process.pid,  # type: ignore[union-attr]
        }
        return {n: (memory_mb(pid), len(os.listdir(f"/proc/{pid}/fd"))) for n, pid in pids.items()}

    with Judge(tiers=(tier,)) as judge:
        judge.warm(package)
        for source in hostile:
            judge.judge(package, source, secrets.token_bytes(16))
        time.sleep(3)
        before, start, wrong = figures(judge), time.perf_counter(), 0
        for i in range(runs):
            if i % 4 == 3:
                wrong += judge.judge(package, good, secrets.token_bytes(16)).status != "accepted"
            else:
                judge.judge(package, hostile[i % len(hostile)], secrets.token_bytes(16))
        seconds = time.perf_counter() - start
        time.sleep(3)  # the last children's pipes close behind the verdict; what is left then has leaked
        after = figures(judge)
    click.echo(f"{runs} runs in {seconds:.0f} s, tier {tier}; good ones not accepted: {wrong}")
    for name, (mb, fds) in before.items():
        click.echo(f"{name:<8} {mb:.1f} -> {after[name][0]:.1f} MB, {fds} -> {after[name][1]} descriptors")


@main.command()
@click.option("--seconds", default=10.0, show_default=True)
def throughput(seconds: float) -> None:
    """Verdicts a second of problem 200 with one and with two children at a time."""
    from concurrent.futures import ThreadPoolExecutor

    from judge.judge import Judge
    from judge.packages import load_packages

    package = load_packages()[200]
    for children in (1, 2):
        with Judge(children=children) as judge:
            judge.warm(package)
            end = time.perf_counter() + seconds

            def work(judge: Judge = judge, end: float = end) -> int:
                done = 0
                while time.perf_counter() < end:
                    judge.judge(package, package.solution.encode(), secrets.token_bytes(16))
                    done += 1
                return done

            with ThreadPoolExecutor(children) as pool:
                done = sum(pool.map(lambda _: work(), range(children)))
        click.echo(f"{children} at a time: {done / seconds:.1f} verdicts a second")


if __name__ == "__main__":
    main()
