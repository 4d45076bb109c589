"""Wrong calls of the sampling functions: 4,000 draws from one row of six tokens, with the seed that an H200 was given, and
how often each token came there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from measured_cases import Case, check_faithful, check_strict
from paged_batches import i32

NAN = float("nan")
P = [0.05, 0.2, 0.1, 0.4, 0.25, 0.0]
HALF, DOUBLE = [x / 2 for x in P], [x * 2 for x in P]
NEGATIVE = [0.5, -0.5, 0.5, 0.5, 0, 0]
FIRST = [4000, 0, 0, 0, 0, 0]
ALL = [192, 803, 414, 1578, 1013, 0]
ILLEGAL = "an illegal memory access was encountered"
f = flashinfer


def counts(
    function: Callable[..., torch.Tensor], row: list[float], *arguments: Any, **options: Any
) -> list[int]:
    tokens = function(torch.tensor([row] * 4000), *arguments, **{"seed": 1, "offset": 0, **options})
    return torch.bincount(tokens.long(), minlength=6).tolist()


def drawn(row: list[float], **options: Any) -> list[int]:
    return counts(f.sampling_from_probs, row, **options)


def top_k(row: list[float], k: Any, **options: Any) -> list[int]:
    return counts(f.top_k_sampling_from_probs, row, k, **options)


def top_p(row: list[float], p: Any) -> list[int]:
    return counts(f.top_p_sampling_from_probs, row, p)


def min_p(row: list[float], p: float) -> list[int]:
    return counts(f.min_p_sampling_from_probs, row, p)


def from_rows(*indices: int) -> list[int]:
    return f.sampling_from_probs(torch.tensor([P, P]), indices=i32(indices), seed=1, offset=0).tolist()


ROW = torch.tensor([P])
LOGITS = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
ROWS = {
    "NaN": Case("row_has_nan", lambda: drawn([0.2, NAN, 0.3, 0.5, 0, 0]), [783, 0, 1226, 1991, 0, 0]),
    "negative": Case("row_has_negative", lambda: drawn(NEGATIVE), [2009, 0, 1991, 0, 0, 0]),
    "negative, top-k": Case("row_has_negative", lambda: top_k(NEGATIVE, 3), [2009, 0, 1991, 0, 0, 0]),
    "logits": Case("row_has_negative", lambda: drawn([1.0, -2.0, 3.0, 0.5, -1.0, 0.0]), FIRST),
    "half": Case("row_not_normalised", lambda: drawn(HALF), [96, 429, 181, 798, 2496, 0]),
    "half, top-k": Case("row_not_normalised", lambda: top_k(HALF, 3), [0, 501, 0, 922, 2577, 0]),
    "half, top-p": Case("row_not_normalised", lambda: top_p(HALF, 0.6), [96, 429, 181, 798, 2496, 0]),
    "double": Case("row_not_normalised", lambda: drawn(DOUBLE), [398, 1611, 779, 1212, 0, 0]),
    "double, top-k": Case("row_not_normalised", lambda: top_k(DOUBLE, 3), [0, 1914, 0, 1763, 323, 0]),
    "double, top-p": Case("row_not_normalised", lambda: top_p(DOUBLE, 0.6), [0, 0, 0, 4000, 0, 0]),
    "empty": Case("row_is_empty", lambda: drawn([0.0] * 6), FIRST),
    "empty, top-k": Case("row_is_empty", lambda: top_k([0.0] * 6, 3), FIRST),
    "empty, top-p": Case("row_is_empty", lambda: top_p([0.0] * 6, 0.5), FIRST),
    "ones in int32": Case(
        "dtypes_differ",
        lambda: f.sampling_from_probs(torch.ones(400, 6, dtype=torch.int32), seed=1, offset=0).sum().tolist(),
        0,
    ),
}

FILTERS = {
    "top-k 0": Case("parameter_out_of_range", lambda: top_k(P, 0), FIRST),
    "top-k -1": Case("parameter_out_of_range", lambda: top_k(P, -1), ALL),
    "top-p 0": Case("parameter_out_of_range", lambda: top_p(P, 0.0), FIRST),
    "top-p -1": Case("parameter_out_of_range", lambda: top_p(P, -1.0), FIRST),
    "top-p 2": Case("parameter_out_of_range", lambda: top_p(P, 2.0), ALL),
    "min-p 2": Case("parameter_out_of_range", lambda: min_p(P, 2.0), FIRST),
    "min-p -1": Case("parameter_out_of_range", lambda: min_p(P, -1.0), ALL),
    "both, top-k 0": Case(
        "parameter_out_of_range",
        lambda: counts(f.top_k_top_p_sampling_from_probs, P, 0, 0.9, filter_apply_order="joint"),
        FIRST,
    ),
    "renorm, top-k 0": Case(
        "parameter_out_of_range", lambda: f.top_k_renorm_probs(ROW, 0).tolist(), [[0.0] * 6]
    ),
    "renorm, top-k -1": Case("parameter_out_of_range", lambda: f.top_k_renorm_probs(ROW, -1).tolist(), [P]),
    "renorm, top-p 0": Case(
        "parameter_out_of_range", lambda: f.top_p_renorm_probs(ROW, 0.0).tolist(), [[0, 0, 0, 1.0, 0, 0]]
    ),
    "renorm, top-p -1": Case(
        "parameter_out_of_range", lambda: f.top_p_renorm_probs(ROW, -1.0).tolist(), [[0, 0, 0, 1.0, 0, 0]]
    ),
    "renorm, top-p 2": Case("parameter_out_of_range", lambda: f.top_p_renorm_probs(ROW, 2.0).tolist(), [P]),
    "mask, top-k 0": Case(
        "parameter_out_of_range",
        lambda: f.top_k_mask_logits(ROW, 0).isneginf().float().tolist(),
        [[1.0] * 6],
    ),
    "mask, top-k -1": Case("parameter_out_of_range", lambda: f.top_k_mask_logits(ROW, -1).tolist(), [P]),
    "top-k 2.5": Case("parameter_type", lambda: top_k(P, 2.5), (TypeError, "Mismatched type on argument")),
    "temperature 0": Case(
        "temperature_not_positive", lambda: f.softmax(LOGITS, temperature=0.0).tolist(), [[0.25] * 4]
    ),
    "temperature 0 in a tensor": Case(
        "temperature_not_positive", lambda: f.softmax(LOGITS, torch.zeros(1)).tolist(), [[0.25] * 4]
    ),
    "temperature -1": Case(
        "temperature_not_positive",
        lambda: f.softmax(LOGITS, temperature=-1.0).tolist(),
        [[0.643914, 0.236883, 0.087144, 0.032059]],
    ),
}

PLACES = {
    "rows close behind": Case("index_out_of_range", lambda: from_rows(0, 1, 2, 500), [4, 0, 0, 0]),
    "a row far behind": Case("index_out_of_range", lambda: from_rows(0, 1, 500_000_000), ILLEGAL),
    "indices in float": Case(
        "indices_wrong",
        lambda: drawn(P, indices=torch.zeros(4000)),
        (RuntimeError, "Inconsistency of Tensor type: maybe_indices must be dl_int32 or dl_int64"),
    ),
    "strided": Case(
        "not_contiguous",
        lambda: f.sampling_from_probs(torch.tensor([P + [0.0] * 6] * 9)[:, :6], seed=1, offset=0),
        (RuntimeError, "probs must be contiguous"),
    ),
}

CASES = [pytest.param(case, id=name) for table in (ROWS, FILTERS, PLACES) for name, case in table.items()]


@pytest.mark.parametrize("case", CASES)
def test_strict_tells_what_was_measured(case: Case) -> None:
    check_strict(case)


@pytest.mark.parametrize("case", CASES)
def test_faithful_acts_it_out(case: Case) -> None:
    check_faithful(case)


def test_a_seed_alone_is_ignored() -> None:
    """Draws come from the generator: other ones than with the seed and an offset, and other ones each time."""
    check_strict(Case("seed_alone", lambda: drawn(P, offset=None), None))
    with mode.use("faithful"):
        generator = torch.Generator().manual_seed(5)
        first, second = (drawn(P, offset=None, generator=generator) for _ in range(2))
    assert first != second
    assert ALL not in (first, second)


@pytest.mark.parametrize("which", ["strict", "faithful"])
def test_types_that_the_library_converts_are_right(which: str) -> None:
    with mode.use(which):
        want = top_k(P, 2)
        for k in (torch.full((4000,), 2.0), torch.full((4000,), 2, dtype=torch.int64)):
            assert top_k(P, k) == want
        assert top_p(P, torch.ones(4000, dtype=torch.int64)) == ALL
        assert top_p(P, torch.full((4000,), 0.5, dtype=torch.float16)) == top_p(P, 0.5)
        assert counts(lambda rows, **o: f.sampling_from_probs(rows.double(), **o), P) == ALL


def test_fractions_of_a_top_k_are_refused() -> None:
    with pytest.raises(RuntimeError, match="an integer or a tensor of integers"):
        top_k(P, torch.full((4000,), 2.5))
