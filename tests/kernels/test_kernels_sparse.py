"""Block sparse attention against dense attention under the mask written out, in float64."""

from __future__ import annotations

import math
import random

import flashinfer
import pytest
import torch
from dense import Rule, arena, attention
from hypothesis import given, settings
from hypothesis import strategies as st
from place import close, i32, normal, rng, there

EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None)
HALF = torch.float16


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_equal_blocks(seed: int) -> None:
    """R = 1 with a small group runs on CUDA cores, a mask on fa2, the rest on what "auto" picks."""
    pick = random.Random(seed)
    R, C = pick.choice([(1, 1), (1, 4), (4, 4), (16, 8), (64, 64)])
    heads = pick.choice([(4, 4), (4, 2), (8, 2)]) if R == 1 else pick.choice([(4, 4), (8, 2), (8, 1)])
    rows, columns = pick.randint(1, 5), pick.randint(1, 6)
    M = (rows - 1) * R + pick.randint(1, R)
    N = columns * C
    generator = rng(pick.randrange(1 << 30))
    blocks = torch.rand(rows, columns, generator=generator) < 0.5
    indices = torch.cat([row.nonzero().flatten() for row in blocks]).tolist()
    indptr = [0, *blocks.sum(1).cumsum(0).tolist()]
    seen = blocks.repeat_interleave(R, 0).repeat_interleave(C, 1)[:M]
    mask = None
    if pick.random() < 0.4 and indices:
        mask = torch.rand(len(indices), R, C, generator=generator) < 0.6
        inside = torch.zeros(rows * R, N, dtype=torch.bool)
        for (row, column), block in zip(blocks.nonzero().tolist(), mask, strict=True):
            inside[row * R : (row + 1) * R, column * C : (column + 1) * C] = block
        seen = inside[:M]
    q = normal(generator, M, heads[0], 64, dtype=HALF)
    k, v = (normal(generator, N, heads[1], 64, dtype=HALF) for _ in range(2))
    wrapper = flashinfer.BlockSparseAttentionWrapper(arena())
    wrapper.plan(
        i32(indptr), i32(indices), M, N, R, C, *heads, 64, mask=None if mask is None else there(mask)
    )
    want, natural = attention(q, k, v, Rule(), seen)
    close(wrapper.run(q, k, v), want, HALF)
    out, lse = wrapper.run(q, k, v, return_lse=True)
    close(out, want, HALF)
    close(lse, natural / math.log(2), HALF, lse=True)


def sizes(generator: torch.Generator, heads: int, blocks: int, total: int) -> torch.Tensor:
    """int32 [heads, blocks], each row adding up to `total`; sizes of 0 may be among them."""
    cuts = torch.randint(0, total + 1, (heads, blocks - 1), generator=generator).sort(1).values
    ends = torch.cat([cuts, torch.full((heads, 1), total)], 1)
    return (ends - torch.cat([torch.zeros(heads, 1, dtype=torch.int64), cuts], 1)).to(torch.int32)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_variable_blocks(seed: int) -> None:
    pick = random.Random(seed)
    heads, group = pick.choice([(1, 1), (2, 1), (2, 4), (4, 2)])
    generator = rng(pick.randrange(1 << 30))
    M, N = pick.randint(8, 90), pick.randint(8, 90)
    rows, columns = pick.randint(1, 4), pick.randint(1, 5)
    row_sz, col_sz = sizes(generator, heads, rows, M), sizes(generator, heads, columns, N)
    blocks = torch.rand(heads, rows, columns, generator=generator) < 0.6
    blocks[0, 0, int(col_sz[0].argmax())] = True
    q = normal(generator, heads * group, M, 64, dtype=HALF)
    k, v = (normal(generator, heads, N, 64, dtype=HALF) for _ in range(2))
    wrapper = flashinfer.VariableBlockSparseAttentionWrapper(arena())
    given_sizes = (there(row_sz), there(col_sz))
    wrapper.plan(there(blocks), *given_sizes, heads * group, heads, 64)
    out, lse = wrapper.run(q, k, v, return_lse=True)
    assert out.shape == q.shape
    assert lse.shape == q.shape[:2]
    for head in range(heads):
        seen = (
            blocks[head].repeat_interleave(row_sz[head].long(), 0).repeat_interleave(col_sz[head].long(), 1)
        )
        of_head = slice(head * group, (head + 1) * group)
        of_q = q[of_head].transpose(0, 1)
        want, natural = attention(of_q, k[head].unsqueeze(1), v[head].unsqueeze(1), Rule(), seen)
        close(out[of_head].transpose(0, 1), want, HALF)
        close(lse[of_head].transpose(0, 1), natural / math.log(2), HALF, lse=True)
    close(wrapper.run(q, k, v), out.double(), HALF)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_output_type_must_be_told(dtype: torch.dtype) -> None:
    generator = rng(1)
    q, k, v = (normal(generator, 8, 4, 64, dtype=dtype) for _ in range(3))
    wrapper = flashinfer.BlockSparseAttentionWrapper(arena(), backend="fa2")
    wrapper.plan(i32([0, 1, 2]), i32([1, 0]), 8, 8, 4, 4, 4, 4, 64, q_data_type=dtype, o_data_type=dtype)
    seen = torch.zeros(8, 8, dtype=torch.bool)
    seen[:4, 4:] = seen[4:, :4] = True
    out = wrapper.run(q, k, v)
    assert out.dtype == dtype
    close(out, attention(q, k, v, Rule(), seen)[0], dtype)
