"""What cases are drawn from: the numbers that stored seeds stand for, and the shapes that problems rely on."""

from __future__ import annotations

import pytest
import torch

from judge.core import draw
from judge.core.rng import Rng


def rng(seed: int = 0) -> Rng:
    return Rng(seed.to_bytes(16, "big"))


def test_the_numbers_of_a_seed_stay() -> None:
    assert draw.lengths(rng(), 6) == [27, 21, 26, 31, 38, 35]
    assert draw.pages(rng(), [2, 0, 1]) == [[4, 2], [], [1]]
    assert draw.page_table(rng(), [3], 2).tolist() == [[8, 9, 4, 5, 2, 3]]
    assert draw.tensor(rng(), [2, 2]).tolist() == [[1.09375, -0.640625], [-0.421875, 1.375]]
    assert draw.tokens(rng(), 4) == [97, 49, 97, 97]


@pytest.mark.parametrize("seed", range(20))
def test_tables_hand_each_position_to_one_request(seed: int) -> None:
    source = rng(seed)
    page_size = source.choice([1, 2, 4, 16])
    seq_lens = draw.lengths(source, 3, page_size)
    assert all(1 <= n <= 40 for n in seq_lens)
    table = draw.page_table(source, seq_lens, page_size, rows=[4, 0, 2])
    assert table.dtype == torch.int32
    assert table.shape[0] == 5
    assert table.shape[1] >= max(seq_lens)
    taken = [int(p) for row, n in zip([4, 0, 2], seq_lens, strict=True) for p in table[row, :n]]
    assert len(set(taken)) == len(taken)
    starts = table[:, ::page_size]
    assert not (starts % page_size).any()


def test_half_the_lengths_are_at_a_border() -> None:
    found = draw.lengths(rng(7), 400, 8, 64)
    near = sum(n % 8 in (7, 0, 1) for n in found)
    assert 200 < near < 320


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_tensors_are_drawn_exactly(dtype: str) -> None:
    one, other = (draw.tensor(rng(3), [5, 7], dtype) for _ in range(2))
    assert torch.equal(one, other)
    assert str(one.dtype) == f"torch.{dtype}"
    assert 0.5 < one.float().std() < 1.6
