"""Every row of the measurements, on every kernel path, in both modes.

The table is written down here a second time, by hand, from the measurements and not from the fakes'
own catalogue: (path) -> "garbage", "nan", "harmless", "illegal", "unmeasured" or (type, text). A path
that is missing can't make the mistake. The batch is the one measured: 3 requests, page size 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from measured_cases import everywhere
from paged_batches import (
    DECODE_PATHS,
    PATHS,
    PREFILL_PATHS,
    PagedBatch,
    i32,
    make_batch,
    plan,
    plan_and_run,
    wrapper_for,
)

KV_LENS = (20, 33, 48)
Q_LENS = (3, 1, 5)


def right_batch(path: str) -> PagedBatch:
    return make_batch(KV_LENS, None if path in DECODE_PATHS else Q_LENS)


@dataclass(frozen=True)
class Row:
    name: str
    code: str
    wrong: Callable[[PagedBatch], PagedBatch]
    real: dict[str, Any]
    argument: tuple[str, str] | str = ""
    position: int | None = None


def without_zero(b: PagedBatch) -> PagedBatch:
    return b.but(indptr=b.indptr[1:].clone())


def strided(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(2 * len(tensor), dtype=tensor.dtype)
    wide[::2] = tensor
    return wide[::2]


def with_entry(tensor: torch.Tensor, position: int, value: int) -> torch.Tensor:
    changed = tensor.clone()
    changed[position] = value
    return changed


def transposed_v(b: PagedBatch) -> PagedBatch:
    return b.but(v=b.v.transpose(0, 1).contiguous().transpose(0, 1))


SIZES = (RuntimeError, "The size of tensor a (2) must match the size of tensor b (3)")
INDPTR = ("indptr", "paged_kv_indptr")
INDICES = ("indices", "paged_kv_indices")
LAST = ("last_page_len", "paged_kv_last_page_len")

ROWS = [
    Row("no leading 0", "kv_indptr_no_leading_zero", without_zero, everywhere(SIZES), INDPTR, 0),
    Row(
        "lengths for indptr, as measured: pages and a 0 after them",
        "kv_indptr_is_lengths",
        lambda b: b.but(indptr=i32([2, 3, 3, 0])),
        {
            "dec": "garbage",
            "tc": (RuntimeError, "kv_indptr[3]0 - kv_indptr[2]3 should be non-negative"),
            "fa2": (RuntimeError, "kv_indptr[3]0 - kv_indptr[2]3 should be non-negative"),
            "fa3": "garbage",
        },
        INDPTR,
    ),
    Row(
        "lengths for indptr, one a request",
        "kv_indptr_is_lengths",
        lambda b: b.but(indptr=i32([2, 3, 3])),
        everywhere(SIZES),
        INDPTR,
    ),
    Row(
        "decreasing",
        "kv_indptr_decreasing",
        lambda b: b.but(indptr=i32([0, 5, 2, 8])),
        {
            "dec": "garbage",
            "tc": (RuntimeError, "kv_indptr[2]2 - kv_indptr[1]5 should be non-negative"),
            "fa2": (RuntimeError, "kv_indptr[2]2 - kv_indptr[1]5 should be non-negative"),
            "fa3": "garbage",
        },
        INDPTR,
        2,
    ),
    Row(
        "last page 0 when full",
        "last_page_len_zero",
        lambda b: b.but(last=i32([4, 1, 0])),
        everywhere("garbage"),
        LAST,
        2,
    ),
    Row(
        "last page beyond the page",
        "last_page_len_too_large",
        lambda b: b.but(last=i32([4, 17, 16])),
        {"dec": "garbage", "tc": "garbage", "fa2": "garbage", "fa3": "illegal"},
        LAST,
        1,
    ),
    Row(
        "last page = the length",
        "last_page_len_is_sequence_length",
        lambda b: b.but(last=i32(KV_LENS)),
        {"dec": "garbage", "tc": "garbage", "fa2": "garbage", "fa3": "illegal"},
        LAST,
        0,
    ),
    Row(
        "last page one short",
        "last_page_len_wrong_count",
        lambda b: b.but(last=b.last[:2].clone()),
        everywhere((RuntimeError, "The size of tensor a (3) must match the size of tensor b (2)")),
        LAST,
    ),
    Row(
        "last page one long",
        "last_page_len_wrong_count",
        lambda b: b.but(last=i32([4, 1, 16, 16])),
        everywhere((RuntimeError, "The size of tensor a (3) must match the size of tensor b (4)")),
        LAST,
    ),
    Row(
        "int64 indices",
        "indices_not_int32",
        lambda b: b.but(indices=b.indices.long()),
        {
            "dec": (RuntimeError, "paged_kv_indices.dtype() == dl_int32 (int64 vs. int32)"),
            "tc": "garbage",
            "fa2": "garbage",
            "fa3": "garbage",
        },
        INDICES,
    ),
    Row(
        "int64 last page",
        "last_page_len_not_int32",
        lambda b: b.but(last=b.last.long()),
        {
            "dec": (RuntimeError, "paged_kv_last_page_len.dtype() == dl_int32 (int64 vs. int32)"),
            "tc": "garbage",
            "fa2": "garbage",
            "fa3": "garbage",
        },
        LAST,
    ),
    Row(
        "int64 qo_indptr",
        "qo_indptr_not_int32",
        lambda b: b.but(qo_indptr=b.qo_indptr.long()),
        dict.fromkeys(PREFILL_PATHS, (RuntimeError, "should be non-negative")),
        ("-", "qo_indptr"),
    ),
    Row(
        "int64 kv indptr",
        "kv_indptr_not_int32",
        lambda b: b.but(indptr=b.indptr.long()),
        {"dec": (RuntimeError, "JIT build"), "tc": "unmeasured", "fa2": "unmeasured", "fa3": "unmeasured"},
        INDPTR,
    ),
    Row(
        "non-contiguous indices",
        "not_contiguous",
        lambda b: b.but(indices=strided(b.indices)),
        everywhere("garbage"),
        INDICES,
    ),
    Row(
        "page out of range",
        "page_out_of_range",
        lambda b: b.but(indices=with_entry(b.indices, 3, 999)),
        {"dec": "illegal", "tc": "unmeasured", "fa2": "unmeasured", "fa3": "unmeasured"},
        INDICES,
        3,
    ),
    Row(
        "negative page",
        "page_negative",
        lambda b: b.but(indices=with_entry(b.indices, 3, -1)),
        {"dec": "garbage", "tc": "nan", "fa2": "garbage", "fa3": "garbage"},
        INDICES,
        3,
    ),
    Row(
        "plan with another page size",
        "page_size_differs",
        lambda b: b.but(page_size=32),
        {"dec": "harmless", "tc": "harmless", "fa2": "harmless", "fa3": "garbage"},
        "paged_kv_cache",
    ),
    Row(
        "wrong seq_lens",
        "seq_lens_wrong",
        lambda b: b.but(seq_lens=i32([20, 30, 48])),
        {"dec": "harmless", "tc": "harmless", "fa2": "harmless", "fa3": "garbage"},
        "seq_lens",
        1,
    ),
    Row(
        "fewer q rows",
        "q_rows",
        lambda b: b.but(q=b.q[:2].clone()),
        {
            "dec": "fewer",
            "tc": (ValueError, "q implies q_len_per_req=0 but plan() used 1"),
            "fa2": (ValueError, "q.shape[0] (2) does not match qo_indptr[-1] (9)"),
            "fa3": (ValueError, "q.shape[0] (2) does not match qo_indptr[-1] (9)"),
        },
        "q",
    ),
    Row(
        "more q rows",
        "q_rows",
        lambda b: b.but(q=torch.cat([b.q, b.q])),
        {
            "dec": (ValueError, "q implies q_len_per_req=2, but the non-tensor-core decode kernel only"),
            "tc": (ValueError, "q implies q_len_per_req=2 but plan() used 1"),
            "fa2": (ValueError, "q.shape[0] (18) does not match qo_indptr[-1] (9)"),
            "fa3": (ValueError, "q.shape[0] (18) does not match qo_indptr[-1] (9)"),
        },
        "q",
    ),
    Row(
        "heads not divisible",
        "heads_not_divisible",
        lambda b: make_batch(b.kv_lens, b.q_lens, heads=(12, 8)),
        {
            "dec": "accepted",
            "fa2": (RuntimeError, "num_qo_heads 12 should be divisible by num_kv_heads 8"),
            "fa3": (RuntimeError, "num_qo_heads 12 should be divisible by num_kv_heads 8"),
        },
        "num_qo_heads",
    ),
    Row(
        "group of 5",
        "group_size_unsupported",
        lambda b: make_batch(b.kv_lens, b.q_lens, heads=(10, 2)),
        {"dec": (RuntimeError, "Unsupported group_size: 5"), "tc": "fine", "fa2": "fine", "fa3": "fine"},
        "num_qo_heads",
    ),
    Row(
        "group of 7",
        "group_size_unsupported",
        lambda b: make_batch(b.kv_lens, b.q_lens, heads=(7, 1)),
        {"dec": (RuntimeError, "Unsupported group_size: 7"), "tc": "fine", "fa2": "fine", "fa3": "fine"},
        "num_qo_heads",
    ),
    Row(
        "bf16 q, q_data_type left out",
        "q_dtype",
        lambda b: make_batch(b.kv_lens, b.q_lens, dtype=torch.bfloat16).but(
            plan_options={"q_data_type": "float16"}
        ),
        everywhere(
            (
                ValueError,
                "The dtype of q torch.bfloat16 does not match the q_data_type torch.float16 "
                "specified in plan "
                "function.",
            )
        ),
        "q",
    ),
    Row(
        "K and V with different strides",
        "kv_strides_differ",
        transposed_v,
        {
            "dec": (RuntimeError, "K/V strides differ at dim 0"),
            "tc": "fine",
            "fa2": "fine",
            "fa3": "unmeasured",
        },
        "paged_kv_cache",
    ),
]

CASES = [pytest.param(row, path, id=f"{row.name}-{path}") for row in ROWS for path in row.real]


TOLD = {
    "garbage": "returns wrong numbers",
    "nan": "returns NaN",
    "harmless": "happens to be right",
    "fewer": "happens to be right",
    "illegal": "illegal memory access",
}
"""What strict mode says of the kernel at hand."""


def right_output(row: Row, path: str) -> torch.Tensor:
    """What the batch gives when nothing is wrong with it."""
    batch = right_batch(path)
    if row.name.startswith(("group", "bf16")):
        batch = row.wrong(batch).but(plan_options={})
    return plan_and_run(path, batch)


@pytest.mark.parametrize(("row", "path"), CASES)
def test_strict_says_what_is_wrong_and_where(row: Row, path: str) -> None:
    outcome = row.real[path]
    batch = row.wrong(right_batch(path))
    if outcome == "fine":
        assert torch.equal(plan_and_run(path, batch), right_output(row, path))
        return
    with pytest.raises(KernelError) as caught:
        plan_and_run(path, batch)
    error = caught.value
    assert error.code == row.code
    names = row.argument if isinstance(row.argument, str) else row.argument[path in PREFILL_PATHS]
    assert error.argument == names
    if row.position is not None:
        assert error.params["position"] == row.position
    for lang in ("zh", "en"):
        text = error.text(lang)
        assert error.what[lang] in text
        assert error.fix[lang] in text
        assert "{" not in text
    if isinstance(outcome, tuple):
        assert isinstance(error, outcome[0])
        assert outcome[1] in str(error)
    elif outcome in TOLD:
        assert TOLD[outcome] in error.real["en"].split(";")[0].split(".")[0]


@pytest.mark.parametrize(("row", "path"), CASES)
def test_faithful_does_what_was_measured(row: Row, path: str) -> None:
    outcome = row.real[path]
    batch = row.wrong(right_batch(path))
    with mode.use("faithful"):
        if isinstance(outcome, tuple):
            with pytest.raises(outcome[0], match=re.escape(outcome[1])) as caught:
                plan_and_run(path, batch)
            assert not isinstance(caught.value, KernelError)
        elif outcome == "unmeasured":
            with pytest.raises(KernelError) as refused:
                plan_and_run(path, batch)
            assert refused.value.code == "not_modelled"
            assert refused.value.params["mistake"] == row.code
        elif outcome == "illegal":
            with pytest.raises(KernelError, match="illegal memory access"):
                plan_and_run(path, batch)
            with pytest.raises(KernelError, match="illegal memory access"):
                plan_and_run(path, right_batch(path))
        else:
            check_output(row, path, outcome, plan_and_run(path, batch), batch)


def check_output(row: Row, path: str, outcome: str, out: torch.Tensor, batch: PagedBatch) -> None:
    assert out.shape == batch.q.shape
    if outcome == "nan":
        assert bool(out.isnan().all())
    elif outcome == "fewer":
        assert torch.equal(out, right_output(row, path)[: len(out)])
    elif outcome == "accepted":
        assert bool(out.isfinite().all())
    elif outcome in ("harmless", "fine"):
        assert torch.equal(out, right_output(row, path))
    else:
        assert outcome == "garbage"
        assert bool(out.isfinite().all())
        assert not torch.allclose(out, right_output(row, path), atol=1e-2)
        assert torch.equal(out, plan_and_run(path, batch))


@pytest.mark.parametrize("path", PATHS)
def test_run_before_plan(path: str) -> None:
    batch = right_batch(path)
    wrapper = wrapper_for(path)
    name = type(wrapper).__name__
    message = re.escape(f"'{name}' object has no attribute '_cached_q_data_type'")
    with pytest.raises(AttributeError, match=message) as caught:
        wrapper.run(batch.q, (batch.k, batch.v))
    assert isinstance(caught.value, KernelError)
    assert caught.value.code == "run_before_plan"
    with mode.use("faithful"), pytest.raises(AttributeError, match=message) as plain:
        wrapper.run(batch.q, (batch.k, batch.v))
    assert not isinstance(plain.value, KernelError)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("which", ["strict", "faithful"])
def test_a_list_is_no_cache(path: str, which: str) -> None:
    batch = right_batch(path)
    wrapper = wrapper_for(path)
    plan(wrapper, batch)
    with (
        mode.use(which),
        pytest.raises(KeyError, match=re.escape("Unrecognized paged_kv_cache type <class 'list'>")),
    ):
        wrapper.run(batch.q, [batch.k, batch.v])
