"""Routing tokens to experts, held to the definition in float64, and sorting the pairs, held to what a grouped
product needs of it."""

from __future__ import annotations

import pytest
import sgl_kernel
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, REAL, i32, rng, there

seeds = st.integers(0, 10000)


def route(gating: torch.Tensor, top_k: int, **options: object) -> tuple[torch.Tensor, torch.Tensor]:
    weights = torch.empty(len(gating), top_k, dtype=torch.float32, device=DEVICE)
    ids = torch.empty(len(gating), top_k, dtype=torch.int32, device=DEVICE)
    assert sgl_kernel.topk_softmax(weights, ids, there(gating), **options) is None
    return weights.cpu(), ids.cpu()


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    seeds,
    st.integers(1, 40),
    st.sampled_from([(4, 1), (8, 2), (64, 6), (128, 8), (60, 4), (60, 1)]),
    st.sampled_from([torch.float32, torch.bfloat16]),
    st.booleans(),
)
def test_the_most_probable_experts_with_their_weights(
    seed: int, tokens: int, sizes: tuple[int, int], dtype: torch.dtype, renormalize: bool
) -> None:
    experts, top_k = sizes
    # Distinct in every row, also rounded to bfloat16: equal experts are another test's subject.
    order = torch.stack([torch.randperm(experts, generator=rng(seed + i)) for i in range(tokens)])
    gating = ((order.float() - experts / 2) / 16).to(dtype)
    weights, ids = route(gating, top_k, renormalize=renormalize)
    probs = torch.softmax(gating.double(), dim=-1)
    best = probs.topk(top_k, dim=-1)
    assert torch.equal(ids.long(), best.indices)
    want = best.values / best.values.sum(dim=-1, keepdim=True) if renormalize else best.values
    torch.testing.assert_close(weights.double(), want, atol=1e-6, rtol=1e-5)


def test_of_equal_experts_the_lower_comes_first() -> None:
    weights, ids = route(torch.tensor([[0.0, 2.0, 2.0, 2.0, 0.0, 1.0, 2.0, 0.0]]), 3, renormalize=True)
    assert ids.tolist() == [[1, 2, 3]]
    torch.testing.assert_close(weights, torch.full((1, 3), 1 / 3))


@pytest.mark.parametrize("experts", [8, 12])
def test_softcap_and_bias_change_the_logits(experts: int) -> None:
    tanh = 2e-5 if REAL else 1e-6  # the GPU's tanh is an approximation
    gating = 6 * torch.randn(5, experts, generator=rng(3))
    bias = torch.randn(experts, generator=rng(4))
    weights, ids = route(gating, 3, moe_softcapping=4.0, correction_bias=there(bias))
    best = torch.softmax(4 * torch.tanh(gating.double() / 4) + bias.double(), dim=-1).topk(3, dim=-1)
    assert torch.equal(ids.long(), best.indices)
    torch.testing.assert_close(weights.double(), best.values, atol=tanh, rtol=1e-5)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    seeds,
    st.integers(1, 300),
    st.sampled_from([(4, 2), (8, 1), (64, 6), (128, 8)]),
    st.sampled_from([1, 4, 16, 64]),
    st.sampled_from([torch.int32, torch.int64]),
    st.booleans(),
    st.booleans(),
)
def test_pairs_lie_sorted_in_blocks_of_one_expert(
    seed: int,
    tokens: int,
    sizes: tuple[int, int],
    block: int,
    dtype: torch.dtype,
    elsewhere: bool,
    ignored: bool,
) -> None:
    """elsewhere: some experts live on another rank, id -1. ignored: those are left out."""
    experts, top_k = sizes
    ids = torch.randint(-1 if elsewhere else 0, experts, (tokens, top_k), generator=rng(seed)).to(dtype)
    numel = ids.numel()
    room = -(-(numel + (experts + 1) * (block - 1)) // 4) * 4
    places = i32([-7] * room)
    of_block = i32([-7] * (-(-room // block)))
    used = i32([-7])
    sgl_kernel.moe_align_block_size(
        there(ids), experts + 1, block, places, of_block, used, i32([0] * (experts + 2)), True, ignored
    )
    flat = ids.flatten().tolist()
    total = int(used)
    counts = [flat.count(expert) for expert in range(-1, experts)]
    if ignored:
        counts[0] = 0
    assert total == sum(-(-count // block) * block for count in counts)
    placed = places[:total].view(-1, block).tolist()
    told = of_block[: total // block].tolist()
    assert told == sorted(told)
    for expert, count in zip(range(-1, experts), counts, strict=True):
        rows = [row for row, owner in zip(placed, told, strict=True) if owner == expert]
        pairs = [pair for row in rows for pair in row]
        wanted = [i for i, owner in enumerate(flat) if owner == expert] if count else []
        assert sorted(pairs[:count]) == wanted
        assert pairs[count:] == [numel] * (len(pairs) - count)


def test_padding_is_left_alone_unless_asked_for() -> None:
    places, of_block, used = i32([-7] * 12), i32([-7] * 3), i32([-7])
    sgl_kernel.moe_align_block_size(i32([1, 0, 1]).view(3, 1), 3, 4, places, of_block, used, i32([0] * 4))
    assert int(used) == 8
    assert places.tolist() == [1, -7, -7, -7, 0, 2, *[-7] * 6]
    assert of_block.tolist() == [0, 1, -7]


def test_what_the_library_refuses() -> None:
    gating = there(torch.zeros(2, 4))
    weights, ids = torch.zeros(2, 2, device=DEVICE), i32([0] * 4).view(2, 2)
    with pytest.raises(RuntimeError, match="First dimension of topk_weights must match"):
        sgl_kernel.topk_softmax(weights[:1], ids, gating)
    with pytest.raises(RuntimeError, match="Second dimension of topk_indices must match"):
        sgl_kernel.topk_softmax(weights, ids[:, :1].contiguous(), gating)
    with pytest.raises(RuntimeError, match="topk must be less than or equal to num_experts"):
        sgl_kernel.topk_softmax(weights, ids, gating[:, :1].contiguous())
    with pytest.raises(RuntimeError, match="expected scalar type Int but found Long"):
        sgl_kernel.topk_softmax(weights, ids.long(), gating)
    with pytest.raises(RuntimeError, match="correction_bias size must match num_experts"):
        sgl_kernel.topk_softmax(weights, ids, gating, False, 0.0, torch.zeros(3, device=DEVICE))
