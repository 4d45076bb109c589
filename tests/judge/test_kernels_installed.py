"""Which kernel packages belong together."""

from __future__ import annotations

import pytest

from judge.kernels import problems

GOOD = {"torch": "2.11.0", "flashinfer-python": "0.7.2.post1", "sglang-kernel": "0.4.6"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"torch": "2.13.0", "sglang-kernel": "0.4.8"}, []),
        ({"torch": "2.9.1", "sglang-kernel": None, "sgl-kernel": "0.3.21"}, []),
        (
            {"torch": "2.13.0"},
            ["sglang-kernel 0.4.6: with torch 2.13 the one that was seen working is 0.4.8"],
        ),
        ({"sglang-kernel": None}, ["sglang-kernel==0.4.6: not installed"]),
        ({"torch": "2.9.1"}, ["sgl-kernel==0.3.21: not installed"]),
        ({"flashinfer-python": "0.6.0"}, ["flashinfer-python 0.6.0: with torch 2.11"]),
        ({"torch": "2.10.0"}, ["no sgl_kernel is known to work with torch 2.10.0"]),
        (
            {"torch": None, "flashinfer-python": None},
            ["flashinfer-python==0.7.2.post1: not installed", "no sgl_kernel"],
        ),
    ],
)
def test_combinations(change: dict[str, str | None], said: list[str]) -> None:
    found = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
    told = problems(found, "en")
    assert len(told) == len(said), told
    assert all(text.startswith(start) for text, start in zip(told, said, strict=True)), told
    assert len(problems(found, "zh")) == len(said)
