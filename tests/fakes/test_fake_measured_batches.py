"""What an H200 did with wrong arrays of a paged batch, on every kernel path, in both modes: the second half of
`test_fake_measured_mistakes`, with counts, starts, strides and lengths. Written down by hand from the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from measured_cases import check_account, everywhere
from paged_batches import (
    DECODE_PATHS,
    PATHS,
    PREFILL_PATHS,
    PagedBatch,
    i32,
    make_batch,
    plan_and_run,
)

KV_LENS, Q_LENS = (40, 33, 20), (3, 5, 2)
Change = Callable[[PagedBatch], PagedBatch]


def right_batch(path: str, kv_lens: tuple[int, ...] = KV_LENS) -> PagedBatch:
    return make_batch(kv_lens, None if path in DECODE_PATHS else Q_LENS, spare_pages=20)


def prefill(outcome: Any) -> dict[str, Any]:
    return dict.fromkeys(PREFILL_PATHS, outcome)


def apart(tensor: torch.Tensor, between: int) -> torch.Tensor:
    """The same values in every other place of a wider tensor."""
    return torch.stack([tensor, torch.full_like(tensor, between)], 1).flatten()[::2]


def with_first(tensor: torch.Tensor, value: int) -> torch.Tensor:
    changed = tensor.clone()
    changed[0] = value
    return changed


def nothing(b: PagedBatch) -> PagedBatch:
    return b.but(
        qo_indptr=i32([0]), indptr=i32([0]), indices=i32([]), last=i32([]), q=b.q[:0], kv_lens=(), q_lens=()
    )


EMPTY = (RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0.")
ROWS_OF_Q = (ValueError, "does not match qo_indptr[-1] (8). For paged prefill, q must have shape")

CASES: list[tuple[str, str, Change, dict[str, Any]]] = [
    (
        "indptr short",
        "kv_indptr_wrong_count",
        lambda b: b.but(indptr=b.indptr[:-1].clone()),
        # Decode takes last_page_len for the wrong one, in the same words: an indptr that begins with 0 is believed.
        prefill((RuntimeError, "The size of tensor a (2) must match the size of tensor b (3)")),
    ),
    (
        "indptr long",
        "kv_indptr_wrong_count",
        lambda b: b.but(indptr=torch.cat([b.indptr, b.indptr[-1:]])),
        prefill((RuntimeError, "The size of tensor a (4) must match the size of tensor b (3)")),
    ),
    (
        "indptr in tokens",
        "kv_indptr_in_tokens",
        lambda b: b.but(indptr=i32([0, 40, 73, 93])),
        everywhere("garbage"),
    ),
    (
        "indptr in two dimensions",
        "not_one_dimensional",
        lambda b: b.but(indptr=b.indptr[None]),
        everywhere((RuntimeError, "(4) must match the size of tensor b (3) at non-singleton dimension 1")),
    ),
    (
        "indptr apart, falling when read in order",
        "not_contiguous",
        lambda b: b.but(indptr=apart(b.indptr, 1)),
        {"dec": "does not come back", "tc": "garbage", "fa2": "garbage", "fa3": "harmless"},
    ),
    (
        "qo_indptr apart",
        "not_contiguous",
        lambda b: b.but(qo_indptr=apart(b.qo_indptr, 1)),
        prefill("unmeasured"),
    ),
    (
        "last_page_len apart",
        "not_contiguous",
        lambda b: b.but(last=apart(b.last, 1)),
        everywhere("unmeasured"),
    ),
    ("indices apart", "not_contiguous", lambda b: b.but(indices=apart(b.indices, 0)), everywhere("garbage")),
    (
        "indices short, a slice",
        "indices_too_short",
        lambda b: b.but(indices=b.indices[:-2]),
        everywhere("harmless"),
    ),
    (
        "indices short, nothing behind",
        "indices_too_short",
        lambda b: b.but(indices=b.indices[:-3].clone()),
        everywhere("garbage"),
    ),
    (
        "last_page_len negative",
        "last_page_len_negative",
        lambda b: b.but(last=with_first(b.last, -1)),
        everywhere("garbage"),
    ),
    (
        "last_page_len so negative that the length is",
        "last_page_len_negative",
        lambda b: b.but(last=with_first(b.last, -50)),
        everywhere("unmeasured"),
    ),
    (
        "qo_indptr without its 0",
        "qo_indptr_no_leading_zero",
        lambda b: b.but(qo_indptr=i32([3, 8, 10])),
        prefill("garbage"),
    ),
    (
        "qo_indptr from 1",
        "qo_indptr_no_leading_zero",
        lambda b: b.but(qo_indptr=i32([1, 3, 8, 10])),
        prefill("garbage"),
    ),
    (
        "qo_indptr short",
        "qo_indptr_wrong_count",
        lambda b: b.but(qo_indptr=i32([0, 3, 8])),
        prefill(ROWS_OF_Q),
    ),
    (
        "qo_indptr long by a request without rows",
        "qo_indptr_wrong_count",
        lambda b: b.but(qo_indptr=i32([0, 3, 8, 10, 10])),
        prefill("harmless"),
    ),
    (
        "qo_indptr long by a request with rows",
        "qo_indptr_wrong_count",
        lambda b: b.but(qo_indptr=i32([0, 3, 7, 8, 10])),
        prefill("unmeasured"),
    ),
    (
        "seq_lens short",
        "seq_lens_wrong_count",
        lambda b: b.but(seq_lens=i32([40, 33])),
        {"dec": "harmless", "tc": "harmless", "fa2": "harmless", "fa3": "garbage"},
    ),
    (
        "seq_lens long",
        "seq_lens_wrong_count",
        lambda b: b.but(seq_lens=i32([40, 33, 20, 7])),
        everywhere("unmeasured"),
    ),
    (
        "page size 0",
        "page_size_invalid",
        lambda b: b.but(page_size=0),
        {"dec": "SIGFPE", "tc": "SIGFPE", "fa2": "SIGFPE", "fa3": "garbage"},
    ),
    ("page size -1", "page_size_invalid", lambda b: b.but(page_size=-1), everywhere("unmeasured")),
    (
        "no requests",
        "empty_batch",
        nothing,
        {
            "dec": (ZeroDivisionError, "integer division or modulo by zero"),
            "tc": EMPTY,
            "fa2": EMPTY,
            "fa3": EMPTY,
        },
    ),
]
ALL = [
    pytest.param(code, change, path, outcome, id=f"{name}-{path}")
    for name, code, change, real in CASES
    for path, outcome in real.items()
]


@pytest.mark.parametrize(("code", "change", "path", "outcome"), ALL)
def test_strict_refuses_these_batches_and_tells_what_was_measured(
    code: str, change: Change, path: str, outcome: Any
) -> None:
    with pytest.raises(KernelError) as caught:
        plan_and_run(path, change(right_batch(path)))
    error = caught.value
    assert error.code == code
    check_account(error, outcome)


@pytest.mark.parametrize(("code", "change", "path", "outcome"), ALL)
def test_faithful_acts_these_batches_out(code: str, change: Change, path: str, outcome: Any) -> None:
    right = plan_and_run(path, right_batch(path))
    wrong = change(right_batch(path))
    with mode.use("faithful"):
        if isinstance(outcome, tuple):
            with pytest.raises(outcome[0], match=re.escape(outcome[1])) as caught:
                plan_and_run(path, wrong)
            assert not isinstance(caught.value, KernelError)
        elif outcome in ("unmeasured", "SIGFPE", "does not come back"):
            with pytest.raises(KernelError) as refused:
                plan_and_run(path, wrong)
            assert refused.value.code == "not_modelled"
            assert refused.value.params["mistake"] == code
        else:
            out = plan_and_run(path, wrong)
            assert out.shape == right.shape
            assert bool(out.isfinite().all())
            assert torch.allclose(out, right, atol=1e-2) is (outcome == "harmless")
            assert torch.equal(out, plan_and_run(path, wrong))


@pytest.mark.parametrize("path", PATHS)
def test_faithful_a_negative_last_page_len_is_added_like_any_other(path: str) -> None:
    batch = right_batch(path)
    shorter = batch.but(kv_lens=(31, *KV_LENS[1:]), last=with_first(batch.last, 15), indptr=i32([0, 2, 5, 7]))
    shorter = shorter.but(indices=torch.cat([batch.indices[:2], batch.indices[3:]]))
    with mode.use("faithful"):
        out = plan_and_run(path, batch.but(last=with_first(batch.last, -1)))
    assert torch.equal(out, plan_and_run(path, shorter))


@pytest.mark.parametrize("path", PATHS)
def test_faithful_indices_apart_are_read_in_order(path: str) -> None:
    batch = right_batch(path)
    wide = apart(batch.indices, 0)
    in_order = torch.as_strided(wide, (len(wide),), (1,)).clone()
    with mode.use("faithful"):
        out = plan_and_run(path, batch.but(indices=wide))
    assert torch.equal(out, plan_and_run(path, batch.but(indices=in_order)))


@pytest.mark.parametrize("path", PREFILL_PATHS)
def test_faithful_a_qo_indptr_that_ends_early_is_a_smaller_batch(path: str) -> None:
    batch = right_batch(path)
    with mode.use("faithful"):
        out = plan_and_run(path, batch.but(qo_indptr=i32([0, 3, 8]), q=batch.q[:8]))
    assert torch.equal(out, plan_and_run(path, batch)[:8])


@pytest.mark.parametrize("first", [1, 3])
def test_faithful_fa2_writes_from_row_0_on(first: int) -> None:
    """Measured: the results of all requests stand so many rows too early; fa3 leaves out the first rows only."""
    batch = right_batch("fa2")
    sums = {1: [1, 3, 8, 10], 3: [3, 8, 10]}[first]
    moved = batch.but(qo_indptr=i32(sums))
    with mode.use("faithful"):
        fa2, fa3 = plan_and_run("fa2", moved), plan_and_run("fa3", moved)
    torch.testing.assert_close(fa2[: 10 - first], fa3[first:])
    assert not bool(fa3[:first].any())
    assert not bool(fa2[10 - first :].any())


def test_lengths_of_any_number_type_are_lengths() -> None:
    """plan turns seq_lens into int32 on the CPU: float32 was right on every path."""
    for path in PATHS:
        batch = right_batch(path)
        told = batch.but(seq_lens=torch.tensor(KV_LENS, dtype=torch.float32))
        assert torch.equal(plan_and_run(path, told), plan_and_run(path, batch))
        for other in (torch.bool, torch.complex64):
            with pytest.raises(KernelError) as caught:
                plan_and_run(path, batch.but(seq_lens=torch.ones(3, dtype=other)))
            assert caught.value.code == "seq_lens_not_integer"


@pytest.mark.parametrize("path", PATHS)
def test_a_last_page_of_an_empty_request(path: str) -> None:
    """Measured: only fa3 attends to something for it."""
    kv_lens = (20, 0, 9)
    batch = right_batch(path, kv_lens)
    filled = batch.but(last=i32([4, 7, 9]))
    right = plan_and_run(path, batch)
    if path != "fa3":
        assert torch.equal(plan_and_run(path, filled), right)
        return
    with pytest.raises(KernelError, match="attends to pages of others"):
        plan_and_run(path, filled)
    with mode.use("faithful"):
        out = plan_and_run(path, filled)
    rows = torch.tensor([0, 1, 2, 8, 9])
    assert torch.equal(out[rows], right[rows])
    assert bool((out[3:8] != 0).any())
