"""Thousands of arrivals, aborts, evictions and finishes against pools that are far too small.

After each step (`check_pages`) every page is in exactly one place: free, the tree, or one request. Every
request ends exactly once, nothing waits for ever, and what greedy requests say does not depend on any of it.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.minisgl.scheduling import VOCAB, Driven

REQUESTS = 400

Requests = list[tuple[list[int], dict[str, Any]]]


def make_requests(rng: random.Random) -> Requests:
    """Prompts that often share beginnings, some of them impossible; short answers."""
    stems = [[rng.randrange(4, VOCAB) for _ in range(rng.randrange(4, 24))] for _ in range(5)]
    requests = []
    for _ in range(REQUESTS):
        kind = rng.random()
        prompt = list(rng.choice(stems)[: rng.randrange(1, 24)]) if kind < 0.7 else []
        prompt += [rng.randrange(4, VOCAB) for _ in range(rng.randrange(0 if prompt else 1, 12))]
        if kind > 0.97:
            prompt = prompt * 40
        params: dict[str, Any] = {"max_tokens": rng.randrange(1, 14), "ignore_eos": rng.random() < 0.3}
        if rng.random() < 0.2:
            params |= {"temperature": 1.0, "seed": rng.randrange(100)}
        requests.append((prompt, params))
    return requests


@pytest.fixture(scope="module")
def requests() -> Requests:
    return make_requests(random.Random(0))


@pytest.fixture(scope="module")
def expected(small_model: Path, requests: Requests) -> list[list[int]]:
    """What each says when nobody else is there. It is half of the work, and the same for all settings: what differs there
    is when requests come, which of them are aborted, and what there is room for."""
    driven = Driven(small_model, overlap=False, cache_type="naive", max_running_req=1, check_pages=False)
    for uid, (prompt, params) in enumerate(requests):
        driven.ask(uid, prompt, **params)
    driven.run()
    driven.shutdown()
    return [driven.told[uid] for uid in range(len(requests))]


def most_overtaken(driven: Driven) -> int:
    """By how many later arrivals a request was overtaken at most on the way to its first token. Numbers are in
    order of arrival. A few are allowed: who waits for a neighbour's prefix is passed by those behind."""
    first_told = list(dict.fromkeys(m.uid for m in driven.outbox if m.next_token is not None))
    return max(sum(other > uid for other in first_told[:place]) for place, uid in enumerate(first_told))


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (0, {"page_size": 1, "num_page_override": 96, "overlap": True}),
        (1, {"page_size": 4, "num_page_override": 24, "overlap": True, "max_extend_tokens": 8}),
        (2, {"page_size": 16, "num_page_override": 7, "overlap": False, "max_extend_tokens": 20}),
        (3, {"page_size": 2, "num_page_override": 40, "overlap": True, "cache_type": "naive"}),
        (4, {"page_size": 4, "num_page_override": 30, "overlap": True, "cuda_graph_bs": (1, 2, 4)}),
        (5, {"page_size": 1, "num_page_override": 80, "overlap": False, "max_extend_tokens": 3}),
    ],
)
def test_everything_ends_once_and_says_what_it_says_alone(
    small_model: Path, requests: Requests, expected: list[list[int]], seed: int, settings: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    driven = Driven(small_model, max_running_req=6, max_seq_len_override=90, **settings)
    limit = driven.engine.max_seq_len
    aborted: set[int] = set()
    waiting = list(range(len(requests)))
    arrived: list[int] = []
    for _ in range(40_000):
        if not waiting and not driven.inbox and not driven.has_work:
            break
        if waiting and rng.random() < 0.25:
            for _ in range(rng.randrange(1, 6)):
                if waiting:
                    uid = waiting.pop(0)
                    prompt, params = requests[uid]
                    driven.ask(uid, prompt, **params)
                    arrived.append(uid)
        if arrived and rng.random() < 0.06:
            uid = rng.choice(arrived[-12:])
            driven.abort(uid)  # may have ended already, may be in the middle of its prompt
            if uid not in driven.ended:
                aborted.add(uid)
        driven.step()
    else:
        raise AssertionError(f"not done: {len(arrived) - len(driven.ended)} requests still live")
    driven.run()
    assert set(driven.ended) == set(range(len(requests)))
    assert most_overtaken(driven) <= 6, "requests that came later go first, and could do so for ever"
    for uid, (prompt, params) in enumerate(requests):
        end = driven.ended[uid]
        if end.finish_reason == "error":
            assert len(prompt) >= limit
        elif end.finish_reason == "abort":
            assert uid in aborted
            assert driven.told[uid] == expected[uid][: len(driven.told[uid])]
        else:
            said = expected[uid][: limit - len(prompt)]
            assert driven.told[uid] == said, f"request {uid}"
            assert (end.finish_reason == "length") == (
                len(said) == min(params["max_tokens"], limit - len(prompt))
                and (params["ignore_eos"] or said[-1] != 3)
            )
    driven.shutdown()
