from collections import Counter

import pytest
import torch

from minisgl.core import Batch, Req, SamplingParams
from minisgl.engine.sample import Sampler, filter_probs

CPU = torch.device("cpu")
VOCAB = 16


def batch_of(*params: SamplingParams, length: int = 5) -> Batch:
    reqs = [
        Req(torch.zeros(length, dtype=torch.int32), row, 0, 4, row, one, None)
        for row, one in enumerate(params)
    ]
    return Batch(reqs, "decode")


def draw(sampler: Sampler, logits: torch.Tensor, *params: SamplingParams, length: int = 5) -> list[int]:
    return sampler.sample(logits, sampler.prepare(batch_of(*params, length=length))).tolist()


def test_greedy_rows_stay_greedy_among_sampled_ones() -> None:
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(0))
    hot = SamplingParams(temperature=50.0)
    sampler = Sampler(CPU, VOCAB, seed=0)
    tokens = [
        draw(sampler, logits, SamplingParams(top_p=0.3), hot, SamplingParams(temperature=9.0, top_k=1))
        for _ in range(50)
    ]
    best = logits.argmax(-1).tolist()
    assert {(a, c) for a, _, c in tokens} == {(best[0], best[2])}
    assert len({b for _, b, _ in tokens}) > 5


def test_draws_follow_the_probabilities() -> None:
    probs = torch.tensor([0.5, 0.25, 0.125, 0.125])
    sampler = Sampler(CPU, 4, seed=1)
    counts = Counter(
        token
        for _ in range(40)
        for token in draw(sampler, probs.log().expand(100, 4), *[SamplingParams(temperature=1.0)] * 100)
    )
    assert [counts[token] / 4000 for token in range(4)] == pytest.approx(probs.tolist(), abs=0.03)


def test_temperature_sharpens() -> None:
    logits = torch.tensor([[0.0, 1.0]]).expand(1000, 2)
    sampler = Sampler(CPU, 2, seed=2)
    for temperature, share in ((1.0, 0.731), (0.25, 0.982), (4.0, 0.562)):
        tokens = draw(sampler, logits, *[SamplingParams(temperature=temperature)] * 1000)
        assert sum(tokens) / 1000 == pytest.approx(share, abs=0.05)


def test_a_seed_gives_the_same_token_in_every_batch() -> None:
    logits = torch.randn(1, VOCAB, generator=torch.Generator().manual_seed(3))
    seeded = SamplingParams(temperature=1.5, seed=7)
    other = SamplingParams(temperature=1.5)
    alone = [draw(Sampler(CPU, VOCAB, seed=s), logits, seeded)[0] for s in range(5)]
    company = [
        draw(Sampler(CPU, VOCAB, seed=s), logits.expand(3, -1), other, seeded, other)[1] for s in range(5)
    ]
    assert len(set(alone + company)) == 1
    by_position = {draw(Sampler(CPU, VOCAB, seed=0), logits, seeded, length=n)[0] for n in range(1, 30)}
    assert len(by_position) > 3
    by_seed = {
        draw(Sampler(CPU, VOCAB, seed=0), logits, SamplingParams(temperature=1.5, seed=s))[0]
        for s in range(30)
    }
    assert len(by_seed) > 3


def test_ranks_with_one_seed_agree() -> None:
    logits = torch.randn(2, VOCAB)
    free = SamplingParams(temperature=2.0)
    ranks = [Sampler(CPU, VOCAB, seed=11) for _ in range(2)]
    for _ in range(10):
        first, second = (draw(rank, logits, free, free) for rank in ranks)
        assert first == second


PROBS = [0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize(
    ("top_k", "top_p", "min_p", "kept"),
    [
        (None, None, None, [0, 1, 2, 3]),
        (2, None, None, [0, 1]),
        (None, 0.4, None, [0]),
        (None, 0.41, None, [0, 1]),  # the token with which the sum reaches top_p is kept
        (None, 1e-6, None, [0]),
        (None, None, 0.5, [0, 1, 2]),
        (2, 0.6, None, [0, 1]),  # top_p counts over what top_k leaves: 0.4/0.7 < 0.6
        (2, 0.5, None, [0]),
        (3, 0.95, 0.7, [0, 1]),
    ],
)
def test_filters(top_k: int | None, top_p: float | None, min_p: float | None, kept: list[int]) -> None:
    order = torch.tensor([2, 0, 3, 1])
    probs = torch.zeros(1, 4).scatter_(1, order.unsqueeze(0), torch.tensor([PROBS]))
    got = filter_probs(
        probs,
        None if top_k is None else torch.tensor([top_k]),
        None if top_p is None else torch.tensor([top_p]),
        None if min_p is None else torch.tensor([min_p]),
    )
    wanted = torch.zeros(4)
    wanted[order[kept]] = torch.tensor(PROBS)[kept]
    torch.testing.assert_close(got[0], wanted)


def test_equal_probabilities_go_to_the_lower_token() -> None:
    assert filter_probs(torch.full((1, 4), 0.25), torch.tensor([2])).tolist() == [[0.25, 0.25, 0.0, 0.0]]


def test_rows_are_filtered_by_their_own_parameters() -> None:
    sampler = Sampler(CPU, VOCAB, seed=0)
    logits = torch.arange(VOCAB, dtype=torch.float32).expand(3, -1) * 0.1
    params = [
        SamplingParams(temperature=1.0, top_k=2),
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=1.0, top_p=0.01),
    ]
    drawn = [draw(sampler, logits, *params) for _ in range(100)]
    assert {row[0] for row in drawn} == {14, 15}
    assert len({row[1] for row in drawn}) > 8
    assert {row[2] for row in drawn} == {15}
