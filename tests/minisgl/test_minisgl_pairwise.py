"""Token for token with transformers, in float32, greedy, through the scheduler.

The ways through the engine are a sample in which every pair of choices occurs: backend and page size, batch,
overlap, chunk budget, prefix cache, decode graphs, and whether prompts share beginnings.
"""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from minisgl.core import SamplingParams
from minisgl.llm import LLM
from tools.models import MIN_GAP, cached, greedy, load_reference

NEW_TOKENS = 12
STEMS = [[(37 * i + 11 * s) % 480 + 5 for i in range(40)] for s in range(2)]
MODELS = ("qwen3", "llama")

CHOICES: dict[str, list[Any]] = {
    "kernels": [("torch", 1), ("torch", 4), ("fi", 1), ("fa", 4), ("fa,fi", 4), ("fi", 16)],
    "batch": [1, 2, 5, 16],
    "budget": [8, 64, 8192],
    "overlap": [True, False],
    "cache": ["radix", "naive"],
    "graphs": [(), (1, 2, 4, 8, 16), (3, 6)],
    "shared": [True, False],
    "model": list(MODELS),
}


def pairwise_sample() -> list[dict[str, Any]]:
    """Rows of choices, greedily chosen so that every pair of values of two different choices is in one."""
    names = list(CHOICES)
    missing = {
        (a, i, b, j)
        for a, b in combinations(names, 2)
        for i, j in product(range(len(CHOICES[a])), range(len(CHOICES[b])))
    }
    rows = []
    while missing:
        row: dict[str, int] = {}
        for name in names:
            row[name] = max(
                range(len(CHOICES[name])),
                key=lambda value: (
                    sum((a, row[a], name, value) in missing for a in row),
                    sum(one[0] == name and one[1] == value for one in missing),
                ),
            )
        a, i, b, j = min(missing)  # at least this pair, so that it ends
        if not any((x, row[x], y, row[y]) in missing for x, y in combinations(names, 2)):
            row[a], row[b] = i, j
        missing -= {(x, row[x], y, row[y]) for x, y in combinations(names, 2)}
        rows.append({name: CHOICES[name][row[name]] for name in names})
    return rows


class Asked(NamedTuple):
    prompt: list[int]
    wanted: list[int]


@pytest.fixture(scope="module")
def asked() -> dict[tuple[str, bool], list[Asked]]:
    """16 prompts of each kind with what transformers says to them, none of them near a tie."""
    found: dict[tuple[str, bool], list[Asked]] = {}
    for name in MODELS:
        model = load_reference(cached(name))
        for shared in (True, False):
            kept: list[Asked] = []
            for i in range(100):
                tail = [(53 * i + 17 * k) % 480 + 5 for k in range(1 + i % 7)]
                # Two of a kind in a row: equal prompts of one step as well.
                prompt = STEMS[i % 2] + tail[: i % 3] if shared else [*tail, 5 + i]
                said, gap = greedy(model, prompt, NEW_TOKENS)
                if gap > MIN_GAP:
                    kept.append(Asked(prompt, said))
                if len(kept) == 16:
                    break
            assert len(kept) == 16
            found[name, shared] = kept
    return found


def test_the_sample_is_pairwise_and_small() -> None:
    rows = pairwise_sample()
    for a, b in combinations(CHOICES, 2):
        assert {(repr(row[a]), repr(row[b])) for row in rows} == {
            (repr(x), repr(y)) for x, y in product(CHOICES[a], CHOICES[b])
        }
    assert len(rows) <= 40


@pytest.mark.parametrize("row", pairwise_sample(), ids=lambda row: "-".join(str(v) for v in row.values()))
def test_says_what_transformers_says(asked: dict[tuple[str, bool], list[Asked]], row: dict[str, Any]) -> None:
    backend, page_size = row["kernels"]
    folder: Path = cached(row["model"])
    llm = LLM(
        str(folder),
        device=torch.device("cpu"),
        attention_backend=backend,
        page_size=page_size,
        num_page_override=1024 // page_size,
        max_seq_len_override=80,
        max_running_req=16,
        max_extend_tokens=row["budget"],
        overlap=row["overlap"],
        cache_type=row["cache"],
        cuda_graph_bs=row["graphs"],
        check_pages=True,
    )
    questions = asked[row["model"], row["shared"]][: row["batch"]]
    for _ in range(2):  # the second time, what the cache keeps is there
        answers = llm.generate(
            [one.prompt for one in questions], SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True)
        )
        assert [one["token_ids"] for one in answers] == [one.wanted for one in questions]
    if row["cache"] == "radix":
        assert all(one["cached_tokens"] for one in answers if one["prompt_tokens"] > page_size)
    llm.shutdown()
