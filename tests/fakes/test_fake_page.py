"""New tokens into a paged cache: what the real kernel wrote, and what strict mode refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError
from test_fake_golden import params


@pytest.mark.parametrize(("case", "t"), params("append"))
def test_appends_like_the_real_kernel(case: dict[str, Any], t: dict[str, torch.Tensor]) -> None:
    seq_lens = flashinfer.get_seq_lens(t["indptr"], t["last"], case["page_size"])
    assert torch.equal(seq_lens, t["seq_lens"])
    counts = torch.tensor([0, *case["append_lens"]])
    where = flashinfer.get_batch_indices_positions(counts.cumsum(0).int(), seq_lens, len(t["positions"]))
    assert torch.equal(where[0], t["batch_indices"])
    assert torch.equal(where[1], t["positions"])
    k, v = t["k"].clone(), t["v"].clone()
    flashinfer.append_paged_kv_cache(
        t["k_new"], t["v_new"], *where, (k, v), t["indices"], t["indptr"], t["last"]
    )
    assert torch.equal(k, t["k_after"])
    assert torch.equal(v, t["v_after"])


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


@dataclass(frozen=True)
class Call:
    """Two requests of 5 and 3 tokens on pages of 4, the last two of the first and the last of the second new."""

    key: torch.Tensor
    value: torch.Tensor
    batch_indices: torch.Tensor
    positions: torch.Tensor
    cache: Any
    indices: torch.Tensor
    indptr: torch.Tensor
    last: torch.Tensor
    layout: str = "NHD"

    def run(self) -> None:
        flashinfer.append_paged_kv_cache(*(getattr(self, name) for name in self.__dataclass_fields__))


def call(**changes: Any) -> Call:
    cache = (torch.zeros(6, 4, 2, 8), torch.zeros(6, 4, 2, 8))
    rows = (torch.ones(3, 2, 8), torch.full((3, 2, 8), 2.0))
    right = Call(*rows, i32(0, 0, 1), i32(3, 4, 2), cache, i32(2, 0, 5), i32(0, 2, 3), i32(1, 3))
    return replace(right, **changes)


def test_float32_and_any_head_dim_are_taken() -> None:
    right = call()
    right.run()
    k, v = right.cache
    assert torch.equal(k[2, 3], right.key[0])
    assert torch.equal(k[0, 0], right.key[1])
    assert torch.equal(v[5, 2], right.value[2])
    assert int(k.count_nonzero()) == 3 * 16


UNMEASURED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a request below -1": ("batch_index_out_of_range", "batch_indices", {"batch_indices": i32(0, 0, -2)}),
    "flags": ("not_integers", "positions", {"positions": torch.tensor([True, True, False])}),
    "head_dim": ("shapes_differ", "append_key", {"key": torch.ones(3, 2, 4)}),
    "before the first token": ("position_negative", "positions", {"positions": i32(3, -1, 2)}),
    "page negative": ("page_out_of_range", "kv_indices", {"indices": i32(2, -1, 5)}),
    "value rows": ("shapes_differ", "append_value", {"value": torch.ones(2, 2, 8)}),
    "type of the cache": ("dtypes_differ", "append_key", {"key": torch.ones(3, 2, 8).half()}),
    "indptr from 1": ("kv_indptr_not_from_zero", "kv_indptr", {"indptr": i32(1, 2, 3)}),
    "indptr decreases": ("kv_indptr_decreasing", "kv_indptr", {"indptr": i32(0, 3, 2)}),
    "indices missing": ("indices_too_short", "kv_indices", {"indices": i32(2, 0)}),
    "last page too long": ("last_page_len_too_large", "kv_last_page_len", {"last": i32(5, 3)}),
    "last page 0": ("last_page_len_zero", "kv_last_page_len", {"last": i32(1, 0)}),
    "last page negative": ("last_page_len_negative", "kv_last_page_len", {"last": i32(1, -1)}),
    "V is smaller": (
        "shapes_differ",
        "paged_kv_cache",
        {"cache": (torch.zeros(6, 4, 2, 8), torch.zeros(5, 4, 2, 8))},
    ),
    "V of another type": (
        "dtypes_differ",
        "paged_kv_cache",
        {"cache": (torch.zeros(6, 4, 2, 8), torch.zeros(6, 4, 2, 8).half())},
    ),
}

NOTICED: dict[str, tuple[str, type[Exception], str, dict[str, Any]]] = {
    "strided keys": (
        "last_dim_not_contiguous",
        RuntimeError,
        r"append_key\.stride\(-1\) == 1 \(2 vs\. 1\)",
        {"key": torch.ones(3, 8, 2).transpose(1, 2)},
    ),
    "entries": (
        "rows_differ",
        RuntimeError,
        r"positions\.size\(0\) == nnz \(2 vs\. 3\)",
        {"positions": i32(3, 4)},
    ),
    "counts": ("kv_indptr_wrong_count", RuntimeError, r"\(2 vs\. 3\)", {"indptr": i32(0, 2)}),
    "strides": (
        "kv_strides_differ",
        RuntimeError,
        "k/v strides must be identical",
        {"cache": (torch.zeros(6, 4, 2, 8), torch.zeros(6, 5, 2, 8)[:, :4])},
    ),
    "layout": ("bad_option", KeyError, "Invalid kv_layout NDH", {"layout": "NDH"}),
    "list": ("cache_type", KeyError, "Unrecognized paged_kv_cache type", {"cache": [1, 2]}),
    "dimensions": (
        "cache_dimensions",
        ValueError,
        "x must be 3D or 4D",
        {"cache": (torch.zeros(2), torch.zeros(2))},
    ),
    "matrix of positions": (
        "not_one_dimensional",
        RuntimeError,
        "positions must be a 1D tensor",
        {"positions": i32(3, 4, 2).view(3, 1)},
    ),
    "strided positions": (
        "not_contiguous",
        RuntimeError,
        "positions must be contiguous",
        {"positions": i32(3, 0, 4, 0, 2, 0)[::2]},
    ),
    "a list of positions": (
        "not_a_tensor",
        AttributeError,
        "'list' object has no attribute 'int'",
        {"positions": [3, 4, 2]},
    ),
    "no rows": (
        "no_rows",
        RuntimeError,
        "invalid configuration argument",
        {
            "key": torch.ones(0, 2, 8),
            "value": torch.ones(0, 2, 8),
            "positions": i32(),
            "batch_indices": i32(),
        },
    ),
}


@pytest.mark.parametrize("name", UNMEASURED)
def test_strict_explains_and_faithful_does_not_guess(name: str) -> None:
    code, argument, changes = UNMEASURED[name]
    with pytest.raises(KernelError) as caught:
        call(**changes).run()
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert caught.value.text("zh")
    with mode.use("faithful"), pytest.raises(NotImplementedError) as refused:
        call(**changes).run()
    assert refused.value.code == "not_modelled"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NOTICED)
def test_what_the_library_notices_is_its_error(name: str) -> None:
    code, raised, message, changes = NOTICED[name]
    with pytest.raises(raised, match=message) as caught:
        call(**changes).run()
    assert isinstance(caught.value, KernelError)
    assert caught.value.code == code
    with mode.use("faithful"), pytest.raises(raised, match=message) as plain:
        call(**changes).run()
    assert not isinstance(plain.value, KernelError)


@pytest.mark.parametrize("name", ["batch_indices", "positions", "indices", "indptr", "last"])
def test_numbers_that_int32_would_cut_are_named(name: str) -> None:
    right = getattr(call(), name).long()
    call(**{name: right}).run()
    with pytest.raises(KernelError) as caught:
        call(**{name: right + (1 << 32)}).run()
    call(indices=torch.tensor([2, 0, 5, 1 << 40])).run()  # an entry of no request
    assert caught.value.code == "beyond_int32"
    assert caught.value.params["value"] == int(right[0]) + (1 << 32)
    with pytest.raises(KernelError) as of_rows:
        flashinfer.get_batch_indices_positions(i32(0, 2, 3), torch.tensor([5, 3]) - (1 << 32), 3)
    assert (of_rows.value.code, of_rows.value.argument) == ("beyond_int32", "seq_lens")


ROWS: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "nnz": ("nnz_too_small", "nnz", (i32(0, 2, 3), i32(5, 3), 2)),
    "starts late": ("append_indptr_wrong", "append_indptr", (i32(1, 2, 3), i32(5, 3), 3)),
    "decreases": ("append_indptr_wrong", "append_indptr", (i32(0, 3, 2), i32(5, 3), 3)),
    "lengths of before": ("seq_lens_without_appended", "seq_lens", (i32(0, 2, 3), i32(1, 3), 3)),
    "a length missing": ("seq_lens_wrong_count", "seq_lens", (i32(0, 2, 3), i32(5), 3)),
    "no entries": ("append_indptr_wrong", "append_indptr", (i32(), i32(), 0)),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_a_batch_are_checked(name: str) -> None:
    code, argument, given = ROWS[name]
    with pytest.raises(KernelError) as caught:
        flashinfer.get_batch_indices_positions(*given)
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_a_request_without_pages_has_no_length() -> None:
    """The formula gives it last_page_len; the kernels take 0. Strict refuses, faithful computes the formula."""
    indptr, last = i32(0, 1, 1), i32(2, 1)
    with pytest.raises(KernelError) as caught:
        flashinfer.get_seq_lens(indptr, last, 4)
    assert caught.value.code == "last_page_len_of_empty_request"
    with mode.use("faithful"):
        assert flashinfer.get_seq_lens(indptr, last, 4).tolist() == [2, 1]
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            flashinfer.get_seq_lens(indptr, i32(1, 2, 3), 4)
    with pytest.raises(KernelError, match="describes 3 requests"):
        flashinfer.get_seq_lens(indptr, i32(1, 2, 3), 4)


@pytest.mark.parametrize(
    ("code", "indptr", "last"),
    [
        ("kv_indptr_decreasing", i32(0, 3, 2), i32(1, 1)),
        ("kv_indptr_not_from_zero", i32(1, 2, 3), i32(1, 1)),
        ("last_page_len_zero", i32(0, 1, 2), i32(0, 1)),
        ("last_page_len_too_large", i32(0, 1, 2), i32(5, 1)),
        ("last_page_len_negative", i32(0, 0, 1), i32(-1, 1)),
    ],
)
def test_lengths_of_wrong_metadata_are_refused(code: str, indptr: torch.Tensor, last: torch.Tensor) -> None:
    with pytest.raises(KernelError) as caught:
        flashinfer.get_seq_lens(indptr, last, 4)
    assert caught.value.code == code
    with mode.use("faithful"):
        assert len(flashinfer.get_seq_lens(indptr, last, 4)) == 2


def test_a_lost_context_stays_lost() -> None:
    mode.lose_context("test", "an illegal memory access was encountered")
    operations: list[Callable[[], Any]] = [
        call().run,
        lambda: flashinfer.get_seq_lens(i32(0, 1), i32(1), 4),
        lambda: flashinfer.get_batch_indices_positions(i32(0, 1), i32(1), 1),
    ]
    for operation in operations:
        with pytest.raises(KernelError, match="illegal memory access"):
            operation()
