"""Sampling in the fakes alone: the generator's known answers, and what strict mode refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flashinfer
import numpy as np
import pytest
import torch
from fake_kernels import mode, philox
from fake_kernels.errors import KernelError
from fake_kernels.sampling import draw, exactly_top_k, top_k_keeps


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        (0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (0xFFFFFFFF, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ],
)
def test_philox_gives_the_published_answers(word: int, answer: list[int]) -> None:
    """Random123's known answers for Philox4x32-10."""
    filled = np.array([word], dtype=np.uint64)
    assert [int(told[0]) for told in philox._philox([filled] * 4, [filled] * 2)] == answer


def test_rows_offsets_and_seeds_have_streams_of_their_own() -> None:
    zeros = torch.zeros(20000, dtype=torch.int64)
    rows = philox.uniform(zeros, zeros)
    offsets = torch.stack([philox.uniform(zeros[:1], zeros[:1] + i)[0] for i in range(40)])
    assert len(set(rows.tolist())) > 19990
    assert len(set(offsets.tolist())) == 40
    assert float(rows.min()) > 0
    assert float(rows.max()) <= 1
    counts = torch.histc(rows.float(), 20, 0, 1)
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 60
    assert abs(float(torch.corrcoef(torch.stack([rows[:-1], rows[1:]]))[0, 1])) < 0.03


def test_the_ends_of_the_unit_interval_draw_possible_tokens() -> None:
    weights = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]] * 3, dtype=torch.float64)
    tokens, valid = draw(weights, torch.tensor([1e-12, 0.5, 1.0], dtype=torch.float64))
    assert tokens.tolist() == [1, 3, 3]
    assert bool(valid.all())


def test_the_path_for_large_vocabularies_breaks_ties() -> None:
    rows = torch.tensor([[1.0, 3.0, 2.0, 2.0, 2.0]])
    assert top_k_keeps(rows, torch.tensor([2])).tolist() == [[False, True, True, True, True]]
    assert exactly_top_k(rows, 2).tolist() == [[False, True, True, False, False]]
    logits = torch.zeros(1, 70000)
    few = {
        int(flashinfer.top_k_top_p_sampling_from_logits(logits, 3, 1.0, seed=s, offset=0)) for s in range(40)
    }
    assert few == {0, 1, 2}
    by_row = torch.tensor([3], dtype=torch.int32)
    drawn = flashinfer.top_k_top_p_sampling_from_logits(logits, by_row, 1.0, seed=1, offset=0)
    assert int(drawn) > 2


P = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
NAN = torch.tensor([[0.5, 0.5, float("nan")]])
HALF_SUM = torch.tensor([[0.3, 0.1, 0.1]])
NEGATIVE = torch.tensor([[1.5, -0.5, 0.0]])
EMPTY = torch.zeros(1, 3)
MASKED = torch.full((1, 3), -torch.inf)
f = flashinfer

UNMEASURED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "NaN in a renorm": ("row_has_nan", "probs", lambda: f.top_k_renorm_probs(NAN, 2)),
    "negative in a renorm": ("row_has_negative", "probs", lambda: f.top_p_renorm_probs(NEGATIVE, 0.5)),
    "temperature NaN": ("temperature_not_positive", "temperature", lambda: f.softmax(P, float("nan"))),
    "top_p NaN": ("parameter_out_of_range", "top_p", lambda: f.top_p_sampling_from_probs(P, float("nan"))),
    "top_k in parts": (
        "parameter_type",
        "top_k",
        lambda: f.top_k_sampling_from_probs(P, torch.tensor([1.5, 2.0])),
    ),
    "top_p as a flag": (
        "parameter_type",
        "top_p",
        lambda: f.top_p_sampling_from_probs(P, torch.tensor([True, True])),
    ),
    "strided indices": (
        "indices_wrong",
        "indices",
        lambda: f.sampling_from_probs(P, torch.tensor([0, 1, 1, 0])[::2]),
    ),
    "a row in front of the first": (
        "index_out_of_range",
        "indices",
        lambda: f.sampling_from_probs(P, torch.tensor([0, -1])),
    ),
    "logits in integers": ("dtypes_differ", "logits", lambda: f.sampling_from_logits(torch.tensor([[0, 1]]))),
    "NaN in logits": ("row_has_nan", "logits", lambda: f.softmax(NAN)),
    "not scaled for top-p": ("row_not_normalised", "probs", lambda: f.top_p_renorm_probs(HALF_SUM, 0.9)),
    "everything masked": ("row_is_empty", "logits", lambda: f.sampling_from_logits(MASKED)),
}

NOTICED: dict[str, tuple[str, type[Exception], str, Callable[[], Any]]] = {
    "NaN checked": (
        "row_has_nan",
        ValueError,
        r"Input probs contains NaN\.",
        lambda: f.sampling_from_probs(NAN, check_nan=True),
    ),
    "NaN checked after the softmax": (
        "row_has_nan",
        ValueError,
        r"Input probs contains NaN\.",
        lambda: f.top_k_top_p_sampling_from_logits(NAN, 2, 0.5, check_nan=True),
    ),
    "one dimension": (
        "wrong_dimensions",
        RuntimeError,
        "probs must be a 2D tensor",
        lambda: f.sampling_from_probs(P[0]),
    ),
    "strided": (
        "not_contiguous",
        RuntimeError,
        "logits must be contiguous",
        lambda: f.softmax(torch.zeros(3, 8)[:, :4]),
    ),
    "order": (
        "bad_option",
        ValueError,
        "Invalid filter_apply_order: p_first",
        lambda: f.top_k_top_p_sampling_from_probs(P, 1, 0.5, filter_apply_order="p_first"),
    ),
    "parameter of another batch": (
        "parameter_shape",
        ValueError,
        "expected length 2 to match the reference tensor batch size, but got length 1",
        lambda: f.top_k_sampling_from_probs(P, torch.tensor([1])),
    ),
    "seed in int32": (
        "seed_wrong",
        ValueError,
        "seed tensor must be int64/uint64",
        lambda: f.sampling_from_probs(P, seed=torch.tensor([1]).int(), offset=torch.tensor([0])),
    ),
    "temperature in a column": (
        "temperature_wrong",
        ValueError,
        r"must be 1D with one value per logits row, got shape \(2, 1\)",
        lambda: f.softmax(P, torch.ones(2, 1)),
    ),
    "temperature in integers": (
        "temperature_wrong",
        ValueError,
        r"got torch\.int64",
        lambda: f.softmax(P, torch.tensor([1, 1])),
    ),
    "temperature in words": (
        "temperature_wrong",
        TypeError,
        "temperature must be None, a real scalar",
        lambda: f.softmax(P, "hot"),
    ),
    "no rows": (
        "no_rows",
        RuntimeError,
        "invalid configuration argument",
        lambda: f.sampling_from_probs(P[:0]),
    ),
    "no outputs": (
        "no_rows",
        RuntimeError,
        "invalid configuration argument",
        lambda: f.sampling_from_probs(P, torch.tensor([], dtype=torch.int32)),
    ),
    "type for top-k": (
        "dtypes_differ",
        AssertionError,
        r"Unsupported dtype torch\.float64",
        lambda: f.top_k_renorm_probs(P.double(), 1),
    ),
}


@pytest.mark.parametrize("name", UNMEASURED)
def test_strict_explains_and_faithful_does_not_guess(name: str) -> None:
    code, argument, call = UNMEASURED[name]
    with pytest.raises(KernelError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert caught.value.text("zh")
    with mode.use("faithful"), pytest.raises(NotImplementedError) as refused:
        call()
    assert refused.value.code == "not_modelled"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NOTICED)
def test_what_the_library_notices_is_its_error(name: str) -> None:
    code, raised, message, call = NOTICED[name]
    with pytest.raises(raised, match=message) as caught:
        call()
    assert isinstance(caught.value, KernelError)
    assert caught.value.code == code
    with mode.use("faithful"), pytest.raises(raised, match=message) as plain:
        call()
    assert not isinstance(plain.value, KernelError)


def test_probabilities_rounded_to_half_types_are_taken() -> None:
    """Entry by entry rounded, a row doesn't sum to 1 to the last digit."""
    logits = torch.randn(4, 150000, generator=torch.Generator().manual_seed(1))
    for dtype in (torch.bfloat16, torch.float16):
        probs = torch.softmax(logits, dim=-1).to(dtype)
        assert flashinfer.sampling_from_probs(probs, seed=1, offset=0).shape == (4,)


def test_any_float_type_is_brought_to_float32() -> None:
    assert flashinfer.sampling_from_probs(P.double(), seed=1, offset=0).shape == (2,)
    assert flashinfer.softmax(P.double()).dtype == torch.float32
    assert flashinfer.top_p_renorm_probs(P.half(), 0.9).dtype == torch.float32


def test_a_lost_context_stays_lost() -> None:
    mode.lose_context("test", "an illegal memory access was encountered")
    for call in (lambda: f.softmax(P), lambda: f.sampling_from_probs(P), lambda: f.top_k_mask_logits(P, 1)):
        with pytest.raises(KernelError, match="illegal memory access"):
            call()
