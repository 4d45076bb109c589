"""Sampling and its filters: filters held to float64, draws held to their support and, by a chi-square bound, to
their distribution. Seeds are fixed, so a bound of one in a million fails always or never.
"""

from __future__ import annotations

from collections.abc import Callable

import flashinfer
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from place import DEVICE, i32, rng, there

DRAWS = 20000
CHI_SQUARE = 45.0
"""With 7 degrees of freedom exceeded once in a million and a half."""

SMALL = [0.30, 0.22, 0.16, 0.12, 0.09, 0.06, 0.04, 0.01]
Draw = Callable[..., torch.Tensor]


def f32(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float32, device=DEVICE)


def many(draw: Draw, row: list[float], seed: int = 1) -> torch.Tensor:
    """How often each token of one row comes in DRAWS draws: float64 [vocabulary]."""
    tokens = draw(f32([row]), indices=i32([0] * DRAWS), seed=seed, offset=0)
    assert tokens.dtype == torch.int32
    assert tokens.shape == (DRAWS,)
    return torch.bincount(tokens.cpu().long(), minlength=len(row)).double()


def holds(counts: torch.Tensor, weights: list[float]) -> None:
    """Nothing outside the support, everything in it, and chi-square within bounds."""
    want = torch.tensor(weights, dtype=torch.float64)
    want = want / want.sum() * counts.sum()
    assert torch.equal(counts > 0, want > 0)
    inside = want > 0
    assert float(((counts - want)[inside] ** 2 / want[inside]).sum()) < CHI_SQUARE


def kept(row: list[float], tokens: set[int]) -> list[float]:
    return [weight if i in tokens else 0.0 for i, weight in enumerate(row)]


def test_probabilities_are_drawn() -> None:
    holds(many(flashinfer.sampling_from_probs, SMALL), SMALL)


def test_logits_are_drawn() -> None:
    logits = (torch.tensor(SMALL).log() + 3).tolist()
    holds(many(flashinfer.sampling_from_logits, logits), SMALL)


@pytest.mark.parametrize(
    ("top_k", "tokens"), [(1, {0}), (3, {0, 1, 2}), (8, set(range(8))), (1000, set(range(8)))]
)
def test_top_k(top_k: int, tokens: set[int]) -> None:
    def draw(probs: torch.Tensor, **options: object) -> torch.Tensor:
        return flashinfer.top_k_sampling_from_probs(probs, top_k, **options)

    holds(many(draw, SMALL), kept(SMALL, tokens))


@pytest.mark.parametrize(
    ("top_p", "tokens"),
    [(0.1, {0}), (0.31, {0, 1}), (0.6, {0, 1, 2}), (0.97, set(range(7))), (1.0, set(range(8)))],
)
def test_top_p(top_p: float, tokens: set[int]) -> None:
    def draw(probs: torch.Tensor, **options: object) -> torch.Tensor:
        return flashinfer.top_p_sampling_from_probs(probs, top_p, **options)

    holds(many(draw, SMALL), kept(SMALL, tokens))


@pytest.mark.parametrize(
    ("min_p", "tokens"), [(0.0, set(range(8))), (0.35, {0, 1, 2, 3}), (0.5, {0, 1, 2}), (1.0, {0})]
)
def test_min_p(min_p: float, tokens: set[int]) -> None:
    def draw(probs: torch.Tensor, **options: object) -> torch.Tensor:
        return flashinfer.min_p_sampling_from_probs(probs, min_p, **options)

    holds(many(draw, SMALL), kept(SMALL, tokens))


@pytest.mark.parametrize(("order", "tokens"), [("top_k_first", {0}), ("joint", {0, 1})])
@pytest.mark.parametrize("from_logits", [False, True])
def test_the_order_of_the_filters_matters(order: str, tokens: set[int], from_logits: bool) -> None:
    """Scaled to the best two, the first has 0.58 and top-p 0.5 needs no second; of all it has 0.3."""

    def draw(rows: torch.Tensor, **options: object) -> torch.Tensor:
        function = (
            flashinfer.top_k_top_p_sampling_from_logits
            if from_logits
            else flashinfer.top_k_top_p_sampling_from_probs
        )
        return function(rows, 2, 0.5, filter_apply_order=order, **options)

    row = torch.tensor(SMALL).log().tolist() if from_logits else SMALL
    holds(many(draw, row), kept(SMALL, tokens))


def test_tokens_that_tie_with_the_last_kept_are_kept() -> None:
    row = [0.5, 0.125, 0.125, 0.125, 0.125]

    def top_k(probs: torch.Tensor, **options: object) -> torch.Tensor:
        return flashinfer.top_k_sampling_from_probs(probs, 2, **options)

    def top_p(probs: torch.Tensor, **options: object) -> torch.Tensor:
        return flashinfer.top_p_sampling_from_probs(probs, 0.55, **options)

    def min_p(probs: torch.Tensor, **options: object) -> torch.Tensor:
        return flashinfer.min_p_sampling_from_probs(probs, 0.25, **options)

    for draw in (top_k, top_p, min_p):
        holds(many(draw, row), row)
    torch.testing.assert_close(flashinfer.top_k_renorm_probs(f32([row]), 2).cpu(), torch.tensor([row]))
    assert torch.equal(flashinfer.top_k_mask_logits(f32([row]), 3).cpu(), torch.tensor([row]))
    assert torch.equal(
        flashinfer.top_k_mask_logits(f32([row]), 1).cpu() > 0, torch.tensor([[True] + [False] * 4])
    )


def test_a_large_vocabulary_with_both_filters() -> None:
    """A vocabulary at which the library picks the k tokens first."""
    generator = rng(4)
    logits = there(torch.randn(1, 70000, generator=generator))
    best = logits.cpu()[0].double().topk(5)
    weights = best.values.softmax(dim=0)
    before = weights.cumsum(0) - weights
    allowed = set(best.indices[before < 0.8].tolist())
    rows = logits.expand(64, -1).contiguous()
    tokens = flashinfer.top_k_top_p_sampling_from_logits(rows, 5, 0.8, seed=3, offset=0)
    assert set(tokens.tolist()) == allowed
    probs = torch.softmax(rows, dim=-1)
    tokens = flashinfer.top_k_top_p_sampling_from_probs(probs, 5, 0.8, seed=3, offset=0)
    assert set(tokens.tolist()) == allowed


def test_each_row_has_its_own_parameter() -> None:
    probs = f32([SMALL] * 3)
    rows = i32([0, 1, 2] * 2000)
    limits = i32([1, 2, 8])
    tokens = flashinfer.top_k_sampling_from_probs(probs, limits, rows, seed=2, offset=0).view(-1, 3).cpu()
    assert [set(column.tolist()) for column in tokens.T] == [{0}, {0, 1}, set(range(8))]
    shares = torch.tensor([0.2, 0.4, 0.6], device=DEVICE)
    tokens = flashinfer.top_p_sampling_from_probs(probs, shares, rows, seed=2, offset=0).view(-1, 3).cpu()
    assert [set(column.tolist()) for column in tokens.T] == [{0}, {0, 1}, {0, 1, 2}]
    tokens = (
        flashinfer.min_p_sampling_from_probs(probs, shares + 0.3, rows, seed=2, offset=0).view(-1, 3).cpu()
    )
    assert [set(column.tolist()) for column in tokens.T] == [{0, 1, 2}, {0, 1}, {0}]
    for order in ("top_k_first", "joint"):
        tokens = flashinfer.top_k_top_p_sampling_from_probs(
            probs, limits, shares, rows, filter_apply_order=order, seed=2, offset=0
        )
        told = [set(column.tolist()) for column in tokens.view(-1, 3).cpu().T]
        assert told == [{0}, {0} if order == "top_k_first" else {0, 1}, {0, 1, 2}]


seeds = st.integers(0, 10000)


def distribution(seed: int, rows: int, vocabulary: int) -> torch.Tensor:
    return torch.softmax(2 * torch.randn(rows, vocabulary, generator=rng(seed)), dim=-1)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seeds, st.sampled_from([5, 100, 3001]), st.floats(0.05, 0.99), st.booleans())
def test_top_p_renormalises(seed: int, vocabulary: int, top_p: float, by_row: bool) -> None:
    probs = distribution(seed, 3, vocabulary)
    shares = torch.tensor([top_p, top_p / 2, 1.0]) if by_row else torch.full((3,), top_p)
    wide = probs.double()
    ordered, order = wide.sort(dim=-1, descending=True)
    before = ordered.cumsum(-1) - ordered
    # Where float32 sums decide, either answer is right.
    assume(float((before - shares.double().unsqueeze(1)).abs().min()) > 3e-5)
    allowed = torch.zeros_like(wide, dtype=torch.bool).scatter_(
        1, order, before < shares.double().unsqueeze(1)
    )
    allowed[shares >= 1] = True
    want = wide.masked_fill(~allowed, 0)
    want = want / want.sum(-1, keepdim=True)
    got = flashinfer.top_p_renorm_probs(there(probs), there(shares) if by_row else top_p).cpu()
    assert got.dtype == torch.float32
    # At 1 a kernel for large vocabularies may drop a tail that its own sums don't see.
    assert torch.equal((got > 0)[shares < 1], (want > 0)[shares < 1])
    torch.testing.assert_close(got.double(), want, atol=1e-6, rtol=1e-5)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    seeds,
    st.sampled_from([5, 100, 3001]),
    st.integers(1, 120),
    st.sampled_from([torch.float32, torch.float16]),
    st.booleans(),
)
def test_top_k_renormalises_and_masks(
    seed: int, vocabulary: int, top_k: int, dtype: torch.dtype, by_row: bool
) -> None:
    probs = distribution(seed, 3, vocabulary).to(dtype)
    limits = torch.tensor([top_k, 1, vocabulary + 9]) if by_row else torch.full((3,), top_k)
    ordered = probs.double().sort(dim=-1, descending=True).values
    last = ordered.gather(1, (limits.clamp(max=vocabulary) - 1).unsqueeze(1))
    want = probs.double() * (probs.double() >= last)
    want = want / want.sum(-1, keepdim=True)
    told = there(limits.int()) if by_row else top_k
    got = flashinfer.top_k_renorm_probs(there(probs), told).cpu()
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), want, atol=1e-6, rtol=2 * torch.finfo(dtype).eps)
    logits = (3 * torch.randn(3, vocabulary, generator=rng(seed))).to(dtype)
    ordered = logits.sort(dim=-1, descending=True).values
    last = ordered.gather(1, (limits.clamp(max=vocabulary) - 1).unsqueeze(1))
    masked = flashinfer.top_k_mask_logits(there(logits), told).cpu()
    assert torch.equal(masked, logits.masked_fill(logits < last, -torch.inf))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(seeds, st.sampled_from([4, 1000]), st.floats(0.1, 5), st.sampled_from(["none", "number", "tensor"]))
def test_softmax_with_temperature(seed: int, vocabulary: int, temperature: float, form: str) -> None:
    logits = 4 * torch.randn(3, vocabulary, generator=rng(seed))
    by = torch.tensor([temperature, 1.0, 2 * temperature])
    told = {"none": None, "number": temperature, "tensor": there(by)}[form]
    divisor = {"none": torch.ones(3), "number": torch.full((3,), temperature), "tensor": by}[form]
    got = flashinfer.softmax(there(logits), told).cpu()
    assert got.dtype == torch.float32
    want = torch.softmax(logits.double() / divisor.double().unsqueeze(1), dim=-1)
    torch.testing.assert_close(got.double(), want, atol=2e-6, rtol=2e-4)


def test_a_call_repeats_with_its_seed_and_changes_with_each_part_of_it() -> None:
    probs = there(distribution(1, 64, 50))

    def draw(**options: object) -> list[int]:
        return list(flashinfer.sampling_from_probs(probs, **options).tolist())

    first = draw(seed=5, offset=8)
    assert draw(seed=5, offset=8) == first
    assert draw(seed=6, offset=8) != first
    assert draw(seed=5, offset=12) != first
    whole = torch.tensor([5], device=DEVICE), torch.tensor([8], device=DEVICE)
    assert draw(seed=whole[0], offset=whole[1]) == first
    changed = torch.full((64,), 5, device=DEVICE)
    changed[32:] = 77
    half = draw(seed=changed, offset=whole[1].expand(64).contiguous())
    assert half[:32] == first[:32]
    assert half[32:] != first[32:]


def test_a_generator_hands_out_new_seeds() -> None:
    probs = there(distribution(1, 64, 50))
    generator = torch.Generator(device=DEVICE)
    generator.manual_seed(3)
    first, second = (flashinfer.sampling_from_probs(probs, generator=generator).tolist() for _ in range(2))
    assert first != second
    generator.manual_seed(3)
    assert flashinfer.sampling_from_probs(probs, generator=generator).tolist() == first
    torch.manual_seed(9)
    first = flashinfer.top_p_sampling_from_probs(probs, 0.9).tolist()
    torch.manual_seed(9)
    assert flashinfer.top_p_sampling_from_probs(probs, 0.9).tolist() == first


def test_outputs_have_the_type_of_indices() -> None:
    probs = f32([SMALL, list(reversed(SMALL))])
    rows = torch.tensor([1, 1, 0], device=DEVICE)
    tokens = flashinfer.top_k_sampling_from_probs(probs, 1, rows)
    assert tokens.dtype == torch.int64
    assert tokens.tolist() == [7, 7, 0]
    assert flashinfer.top_k_sampling_from_probs(probs, 1).dtype == torch.int32


def test_rows_without_a_choice_are_told() -> None:
    probs = f32([SMALL, [0.0] * 8])
    calls = (
        flashinfer.sampling_from_probs(probs, return_valid=True),
        flashinfer.top_p_sampling_from_probs(probs, 0.5, return_valid=True),
        flashinfer.top_k_sampling_from_probs(probs, 2, return_valid=True),
        flashinfer.min_p_sampling_from_probs(f32([SMALL] * 2), 0.5, return_valid=True),
    )
    for tokens, valid in calls[:3]:
        assert valid.tolist() == [True, False]
        assert int(tokens[1]) == 0
    assert calls[3][1].tolist() == [True, True]


def test_what_the_library_refuses() -> None:
    probs = f32([SMALL] * 2)
    broken = f32([SMALL, [*SMALL[:7], float("nan")]])
    with pytest.raises(ValueError, match=r"Input probs contains NaN\."):
        flashinfer.sampling_from_probs(broken, check_nan=True)
    with pytest.raises(ValueError, match=r"Input logits contains NaN\."):
        flashinfer.sampling_from_logits(broken, check_nan=True)
    with pytest.raises(ValueError, match="expected length 2 to match"):
        flashinfer.top_k_sampling_from_probs(probs, i32([1, 2, 3]))
    with pytest.raises(ValueError, match="0-dimensional tensor"):
        flashinfer.top_p_sampling_from_probs(probs, torch.tensor(0.5, device=DEVICE))
    with pytest.raises(ValueError, match="2D tensor"):
        flashinfer.min_p_sampling_from_probs(probs, torch.full((2, 1), 0.5, device=DEVICE))
    with pytest.raises(ValueError, match="Invalid filter_apply_order: top_p_first"):
        flashinfer.top_k_top_p_sampling_from_probs(probs, 2, 0.5, filter_apply_order="top_p_first")
    with pytest.raises(ValueError, match="must both be tensors or both be scalars"):
        flashinfer.sampling_from_probs(probs, seed=1, offset=torch.tensor([0], device=DEVICE))
    with pytest.raises(ValueError, match="offset tensor length must be 1 or 2"):
        flashinfer.sampling_from_probs(
            probs, seed=torch.tensor([1], device=DEVICE), offset=torch.tensor([0, 1, 2], device=DEVICE)
        )
    with pytest.raises(ValueError, match="temperature tensor length must equal"):
        flashinfer.softmax(probs, torch.ones(3, device=DEVICE))
    with pytest.raises(TypeError, match="temperature must be None, a real scalar"):
        flashinfer.softmax(probs, "1")
    with pytest.raises(AssertionError, match=r"Unsupported dtype torch\.float64"):
        flashinfer.top_k_mask_logits(probs.double(), 2)
