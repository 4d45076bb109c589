"""Rotary embedding in the fakes alone: float32 to the last digits, odd sizes, and what strict mode refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_float32_of_any_even_size_is_exact() -> None:
    q, k = torch.randn(3, 2, 6), torch.randn(3, 1, 6)
    positions = i32(0, 7, 100000)
    angle = positions.double().view(3, 1, 1) * 1e4 ** -(torch.arange(0, 6, 2).double() / 6)
    for x, got in zip((q, k), flashinfer.apply_rope_pos_ids(q, k, positions), strict=True):
        first, second = x.double().split(3, dim=-1)
        want = torch.cat(
            [first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], dim=-1
        )
        torch.testing.assert_close(got.double(), want, atol=2e-6, rtol=0)


def test_the_functions_that_read_positions_agree() -> None:
    q, k = torch.randn(5, 2, 64), torch.randn(5, 1, 64)
    by_ids = flashinfer.apply_rope_pos_ids(q, k, i32(3, 4, 0, 1, 2))
    ragged = flashinfer.apply_rope(q, k, i32(0, 2, 5), i32(3, 0))
    for one, other in zip(by_ids, ragged, strict=True):
        assert torch.equal(one, other)


def test_dimensions_beyond_rotary_dim_stay() -> None:
    q, k = torch.randn(2, 2, 64), torch.randn(2, 1, 64)
    told, _ = flashinfer.apply_rope_pos_ids(q, k, i32(5, 6), rotary_dim=32)
    assert torch.equal(told[..., 32:], q[..., 32:])
    assert not torch.equal(told[..., :32], q[..., :32])


Q, K = torch.zeros(3, 2, 64), torch.zeros(3, 1, 64)
IDS = i32(0, 1, 2)
FLAT = (torch.zeros(3, 128), torch.zeros(3, 64))
CACHE = torch.zeros(4, 64)
ids, ragged, cached = (
    flashinfer.apply_rope_pos_ids,
    flashinfer.apply_rope,
    flashinfer.apply_rope_with_cos_sin_cache,
)

UNMEASURED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "odd, in pairs": (
        "rotary_dim_wrong",
        "rotary_dim",
        lambda: ids(Q, K, IDS, rotary_dim=31, interleave=True),
    ),
    "negative": ("rotary_dim_wrong", "rotary_dim", lambda: ids(Q, K, IDS, rotary_dim=-2)),
    "a cache of 12 in pairs": (
        "rotary_dim_unaligned",
        "rotary_dim",
        lambda: cached(IDS, *FLAT, 64, torch.zeros(4, 12), False),
    ),
    "a cache of nothing": (
        "rotary_dim_wrong",
        "rotary_dim",
        lambda: cached(IDS, *FLAT, 64, CACHE[:, :0].clone()),
    ),
    "too many positions": ("rows_differ", "pos_ids", lambda: ids(Q, K, i32(0, 1, 2, 3))),
    "too few positions for a cache": ("rows_differ", "positions", lambda: cached(IDS[:2], *FLAT, 64, CACHE)),
    "negative position in a cache": (
        "position_negative",
        "positions",
        lambda: cached(i32(0, -1, 2), *FLAT, 64, CACHE),
    ),
    "k of another type": ("dtypes_differ", "k", lambda: ids(Q, K.half(), IDS)),
    "double": ("dtypes_differ", "q", lambda: ids(Q.double(), K.double(), IDS)),
    "indptr starts late": ("indptr_wrong", "indptr", lambda: ragged(Q, K, i32(1, 3), i32(0))),
    "indptr decreases": ("indptr_wrong", "indptr", lambda: ragged(Q, K, i32(0, 4, 3), i32(0, 0))),
    "negative offset": ("position_negative", "offsets", lambda: ragged(Q, K, i32(0, 3), i32(-1))),
}

NOTICED: dict[str, tuple[str, type[Exception], str, Callable[[], Any]]] = {
    "two dimensions": (
        "wrong_dimensions",
        RuntimeError,
        "q must be a 3D tensor",
        lambda: ids(Q[0], K, IDS),
    ),
    "rows of k": (
        "shapes_differ",
        RuntimeError,
        r"q\.size\(0\) == k\.size\(0\) \(3 vs\. 2\)",
        lambda: ids(Q, K[:2], IDS),
    ),
    "types of indptr and offsets": (
        "index_types_differ",
        RuntimeError,
        r"indptr\.dtype\(\) == offsets\.dtype\(\)",
        lambda: ragged(Q, K, i32(0, 3), i32(0).long()),
    ),
    "entries of indptr": (
        "indptr_wrong_count",
        RuntimeError,
        r"\(2 vs\. 3\)",
        lambda: ragged(Q, K, i32(0, 3), i32(0, 0)),
    ),
    "cache in half": (
        "cos_sin_cache_type",
        ValueError,
        "cos_sin_cache should be float32",
        lambda: cached(IDS, *FLAT, 64, CACHE.half()),
    ),
    "cache too wide": (
        "cos_sin_cache_too_wide",
        RuntimeError,
        r"head_dim \(32\) must be >= rotary_dim \(64\)",
        lambda: cached(IDS, *FLAT, 32, CACHE),
    ),
    "cache flat": (
        "wrong_dimensions",
        RuntimeError,
        "cos_sin_cache must be a 2D tensor",
        lambda: cached(IDS, *FLAT, 64, CACHE[0]),
    ),
    "head size": ("head_size_wrong", RuntimeError, "shape", lambda: cached(IDS, *FLAT, 72, CACHE)),
    "strided positions": (
        "not_contiguous",
        RuntimeError,
        "pos_ids must be contiguous",
        lambda: ids(Q, K, i32(0, 9, 1, 9, 2, 9)[::2]),
    ),
    "no rows": (
        "no_rows",
        RuntimeError,
        "invalid configuration argument",
        lambda: ids(Q[:0], K[:0], IDS[:0]),
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


def test_a_lost_context_stays_lost() -> None:
    mode.lose_context("test", "an illegal memory access was encountered")
    for call in (lambda: ids(Q, K, IDS), lambda: cached(IDS, *FLAT, 64, CACHE)):
        with pytest.raises(KernelError, match="illegal memory access"):
            call()
