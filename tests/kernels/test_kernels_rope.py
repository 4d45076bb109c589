"""Rotary embedding held to complex multiplication in float64, pair by pair."""

from __future__ import annotations

import math

import flashinfer
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from place import HALF, close, i32, normal, rng, there

LLAMA31 = {
    "rope_scale": 8.0,
    "rope_theta": 5e5,
    "low_freq_factor": 1,
    "high_freq_factor": 4,
    "old_context_len": 8192,
}


def frequencies(rotary_dim: int, scale: float, theta: float) -> torch.Tensor:
    return theta ** -(torch.arange(0, rotary_dim, 2).double() / rotary_dim) / scale


def llama31_frequencies(rotary_dim: int) -> torch.Tensor:
    """As the model's own paper code has it, by wavelength."""
    told = []
    for frequency in frequencies(rotary_dim, 1.0, 5e5).tolist():
        wavelength = 2 * math.pi / frequency
        if wavelength < 8192 / 4:
            told.append(frequency)
        elif wavelength > 8192 / 1:
            told.append(frequency / 8)
        else:
            smooth = (8192 / wavelength - 1) / (4 - 1)
            told.append((1 - smooth) * frequency / 8 + smooth * frequency)
    return torch.tensor(told, dtype=torch.float64)


def rotated(x: torch.Tensor, positions: list[int], per_pair: torch.Tensor, interleave: bool) -> torch.Tensor:
    """x [tokens, heads, head_dim] turned, float64: each pair is a complex number times exp(i * angle)."""
    x = x.cpu().double()
    half = len(per_pair)
    turning = x[..., : 2 * half]
    real, imaginary = (
        (turning[..., 0::2], turning[..., 1::2]) if interleave else (turning[..., :half], turning[..., half:])
    )
    angle = torch.tensor(positions).double().view(-1, 1, 1) * per_pair
    told = torch.complex(real, imaginary) * torch.polar(torch.ones_like(angle), angle)
    out = x.clone()
    if interleave:
        out[..., 0 : 2 * half : 2], out[..., 1 : 2 * half : 2] = told.real, told.imag
    else:
        out[..., :half], out[..., half : 2 * half] = told.real, told.imag
    return out


shapes = st.tuples(
    st.lists(st.integers(0, 500), min_size=1, max_size=9),
    st.sampled_from([(64, 64), (64, 32), (64, 16), (128, 128), (128, 96)]),
    st.sampled_from([(1, 1), (4, 2), (6, 1)]),
    st.booleans(),
    st.integers(0, 999),
)


def heads(
    tokens: int, counts: tuple[int, int], head_dim: int, seed: int, dtype: torch.dtype = torch.float16
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = rng(seed)
    return (
        normal(generator, tokens, counts[0], head_dim, dtype=dtype),
        normal(generator, tokens, counts[1], head_dim, dtype=dtype),
    )


@settings(derandomize=True, deadline=None, max_examples=25)
@given(shapes, st.sampled_from([(1.0, 1e4), (4.0, 1e4), (1.0, 1e6)]))
def test_positions_as_ids(
    shape: tuple[list[int], tuple[int, int], tuple[int, int], bool, int], base: tuple[float, float]
) -> None:
    positions, (head_dim, rotary_dim), counts, interleave, seed = shape
    q, k = heads(len(positions), counts, head_dim, seed)
    options = {
        "rotary_dim": rotary_dim,
        "interleave": interleave,
        "rope_scale": base[0],
        "rope_theta": base[1],
    }
    got = flashinfer.apply_rope_pos_ids(q, k, i32(positions), **options)
    per_pair = frequencies(rotary_dim, *base)
    for given_x, x in zip(got, (q, k), strict=True):
        close(given_x, rotated(x, positions, per_pair, interleave), torch.float16)
    assert flashinfer.apply_rope_pos_ids_inplace(q, k, i32(positions).long(), **options) is None
    assert torch.equal(got[0], q)
    assert torch.equal(got[1], k)


@pytest.mark.parametrize("rotary_dim", [8, 24])
def test_neighbours_may_turn_in_fewer_dimensions_than_halves(rotary_dim: int) -> None:
    """A thread holds eight dimensions: whole pairs of neighbours, but not both ends of pairs of halves."""
    positions = [0, 5, 300]
    q, k = heads(3, (4, 2), 64, 7)
    got = flashinfer.apply_rope_pos_ids(q, k, i32(positions), rotary_dim=rotary_dim, interleave=True)
    for given_x, x in zip(got, (q, k), strict=True):
        close(given_x, rotated(x, positions, frequencies(rotary_dim, 1.0, 1e4), True), torch.float16)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300)), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 999),
)
def test_positions_as_offsets_of_ragged_requests(
    batch: list[tuple[int, int]], interleave: bool, seed: int
) -> None:
    """Also of requests without rows, and of a batch without any."""
    counts = [rows for rows, _ in batch]
    positions = [offset + j for rows, offset in batch for j in range(rows)]
    q, k = heads(len(positions), (4, 2), 64, seed)
    indptr = i32([sum(counts[:i]) for i in range(len(counts) + 1)])
    offsets = i32([offset for _, offset in batch])
    if not positions:
        return
    got = flashinfer.apply_rope(q, k, indptr, offsets, interleave=interleave)
    per_pair = frequencies(64, 1.0, 1e4)
    for given_x, x in zip(got, (q, k), strict=True):
        close(given_x, rotated(x, positions, per_pair, interleave), torch.float16)
    flashinfer.apply_rope_inplace(q, k, indptr.long(), offsets.long(), interleave=interleave)
    assert torch.equal(got[0], q)
    assert torch.equal(got[1], k)


@pytest.mark.parametrize("interleave", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_llama31_blends_its_frequencies(dtype: torch.dtype, interleave: bool) -> None:
    positions = [0, 3, 77, 500]
    q, k = heads(4, (4, 2), 128, 5, dtype)
    want = [rotated(x, positions, llama31_frequencies(128), interleave) for x in (q, k)]
    by_ids = flashinfer.apply_llama31_rope_pos_ids(q, k, i32(positions), interleave=interleave, **LLAMA31)
    ragged = (i32([0, 1, 2, 3, 4]), i32(positions))
    by_offset = flashinfer.apply_llama31_rope(q, k, *ragged, interleave=interleave)
    for got in (by_ids, by_offset):
        for given_x, wanted in zip(got, want, strict=True):
            close(given_x, wanted, dtype)
    again = (q.clone(), k.clone())
    flashinfer.apply_llama31_rope_pos_ids_inplace(*again, i32(positions), interleave=interleave)
    flashinfer.apply_llama31_rope_inplace(q, k, *ragged, interleave=interleave)
    assert torch.equal(again[0], by_ids[0])
    assert torch.equal(q, by_offset[0])
    assert torch.equal(k, by_offset[1])


@settings(derandomize=True, deadline=None, max_examples=20)
@given(shapes)
def test_a_cache_of_cos_and_sin(shape: tuple[list[int], tuple[int, int], tuple[int, int], bool, int]) -> None:
    positions, (head_dim, rotary_dim), counts, interleave, seed = shape
    per_pair = frequencies(rotary_dim, 1.0, 1e4)
    angles = torch.arange(501).double().unsqueeze(1) * per_pair
    cache = there(torch.cat([angles.cos(), angles.sin()], dim=1).float())
    q, k = heads(len(positions), counts, head_dim, seed)
    flat = (q.flatten(1), k.flatten(1))
    got = flashinfer.apply_rope_with_cos_sin_cache(
        i32(positions), *flat, head_dim, cache, is_neox=not interleave
    )
    for given_x, x in zip(got, (q, k), strict=True):
        assert given_x.shape == x.flatten(1).shape
        close(given_x.view(x.shape), rotated(x, positions, per_pair, interleave), torch.float16)
    # In place on slices of one projection: rows with a stride.
    qkv = torch.cat([*flat, flat[1]], dim=1)
    wide = flat[0].shape[1]
    slices = (qkv[:, :wide], qkv[:, wide : wide + flat[1].shape[1]])
    flashinfer.apply_rope_with_cos_sin_cache_inplace(
        i32(positions).long(), *slices, head_dim, cache, is_neox=not interleave
    )
    assert torch.equal(slices[0], got[0])
    assert torch.equal(slices[1], got[1])
    assert torch.equal(qkv[:, wide + flat[1].shape[1] :], flat[1])


def test_only_differences_of_positions_matter() -> None:
    """Why it works: q at m times k at n depends on m - n alone."""
    q, k = heads(1, (1, 1), 64, 3, torch.bfloat16)
    scores = []
    for shift in (0, 40, 300):
        told_q, _ = flashinfer.apply_rope_pos_ids(q, k, i32([9 + shift]))
        _, told_k = flashinfer.apply_rope_pos_ids(q, k, i32([2 + shift]))
        scores.append(float((told_q.double() * told_k.double()).sum()))
    assert max(scores) - min(scores) < 0.3
    assert abs(scores[0] - float((q.double() * k.double()).sum())) > 1


def test_the_cache_must_be_float32() -> None:
    q, k = heads(1, (1, 1), 64, 0)
    with pytest.raises(ValueError, match="cos_sin_cache should be float32"):
        flashinfer.apply_rope_with_cos_sin_cache(i32([0]), q.flatten(1), k.flatten(1), 64, q.view(1, 64))
