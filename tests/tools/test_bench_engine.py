"""The engine's bench, on a tiny model and short prompts: it runs through, counts what it says, and refuses to
report rates of answers that are not whole."""

import re

import click
import pytest
from click.testing import CliRunner

from tools import bench_engine
from tools.bench import main
from tools.models import cached


def test_it_reports_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cached("llama")
    monkeypatch.setattr("tools.models.cached", lambda name: folder)
    for name, value in {"PROMPT_TOKENS": 12, "NEW_TOKENS": 5, "SHARED_TOKENS": 48, "SHARED_BATCH": 3}.items():
        monkeypatch.setattr(bench_engine, name, value)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # the command sets it; this process gets it back
    result = CliRunner().invoke(main, ["engine", "--runs", "2", "--batch", "1", "--batch", "3"])
    assert result.exit_code == 0, result.output
    rates = re.findall(r"^(.+?) +([\d.]+) t/s +([\d.]+) t/s +([\d.]+)x", result.output, re.MULTILINE)
    assert [what for what, *_ in rates] == [
        "batch 1: prefill",
        "batch 1: decode",
        "batch 3: prefill",
        "batch 3: decode",
        "3 x 48 shared: all",
    ]
    assert all(float(number) > 0 for _, *numbers in rates for number in numbers)
    assert re.search(r"batch 3: decode .* \d of 6 answers equal", result.output)


def test_short_answers_are_no_figure() -> None:
    with pytest.raises(click.ClickException, match="an answer has not 3 tokens"):
        bench_engine._timed(lambda prompts, new: [[1, 2]], [[5]], 3)


def test_sides_take_turns_at_being_first() -> None:
    def ours(prompts: list[list[int]], new: int) -> list[list[int]]:
        return []

    def theirs(prompts: list[list[int]], new: int) -> list[list[int]]:
        return []

    assert bench_engine._in_turn(0, ours, theirs) == (ours, theirs)
    assert bench_engine._in_turn(1, ours, theirs) == (theirs, ours)


def test_the_ratio_is_the_median_of_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    bench_engine._report("what", [(10.0, 5.0), (30.0, 10.0), (8.0, 8.0)])
    assert capsys.readouterr().out.split() == ["what", "10.0", "t/s", "8.0", "t/s", "2.00x"]
