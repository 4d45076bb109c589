"""Norms, activations and merges in the fakes alone: float32, in-place merges of another LSE type, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import sgl_kernel
import torch
from fake_kernels import mode
from fake_kernels.errors import KernelError


def test_float32_is_exact() -> None:
    x, weight = torch.randn(4, 24), torch.randn(24)
    want = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-6).sqrt() * (1 + weight.double())
    torch.testing.assert_close(flashinfer.gemma_rmsnorm(x, weight).double(), want, atol=2e-6, rtol=0)
    want = torch.nn.functional.layer_norm(x.double(), (24,), weight.double(), weight.double(), 1e-6)
    torch.testing.assert_close(flashinfer.layernorm(x, weight, weight).double(), want, atol=2e-6, rtol=0)


def test_the_two_gelus_are_not_one() -> None:
    gate = torch.linspace(-4, 4, 24)
    x = torch.cat([gate, torch.ones(24)]).view(1, 48)
    wide = gate.double()
    exact = wide * 0.5 * (1 + torch.erf(wide / math.sqrt(2)))
    tanh = wide * 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    for package in (flashinfer, sgl_kernel):
        torch.testing.assert_close(package.gelu_and_mul(x)[0].double(), exact, atol=1e-6, rtol=0)
        torch.testing.assert_close(package.gelu_tanh_and_mul(x)[0].double(), tanh, atol=1e-6, rtol=0)
    assert float((exact - tanh).abs().max()) > 1e-4


def in_place(dtype: torch.dtype) -> tuple[list[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    v, v_other = (torch.randn(3, 2, 8, generator=generator) for _ in range(2))
    s, s_other = (torch.randn(3, 2, generator=generator).to(dtype) for _ in range(2))
    return [v, s, v_other, s_other], flashinfer.merge_state(v, s, v_other, s_other)


def test_an_lse_of_another_type_is_not_updated() -> None:
    """Measured: the caller's bfloat16 LSE stays. Strict refuses, faithful merges v alone."""
    parts, (want, _) = in_place(torch.bfloat16)
    before = [part.clone() for part in parts]
    with pytest.raises(KernelError) as caught:
        flashinfer.merge_state_in_place(*parts)
    assert (caught.value.code, caught.value.argument) == ("lse_not_updated", "s")
    assert all(torch.equal(now, then) for now, then in zip(parts, before, strict=True))
    with mode.use("faithful"):
        flashinfer.merge_state_in_place(*parts)
    assert torch.equal(parts[0], want)
    assert torch.equal(parts[1], before[1])


def test_the_other_lse_may_be_of_any_type() -> None:
    parts, _ = in_place(torch.float32)
    parts[3] = parts[3].to(torch.bfloat16)
    want = flashinfer.merge_state(*parts)
    flashinfer.merge_state_in_place(*parts)
    assert torch.equal(parts[0], want[0])
    assert torch.equal(parts[1], want[1])


def test_no_parts_and_empty_parts_make_an_empty_state() -> None:
    for parts in (0, 3):
        v, s = flashinfer.merge_states(torch.zeros(2, parts, 1, 8), torch.full((2, parts, 1), -math.inf))
        assert not v.any()
        assert bool((s == -math.inf).all())


def test_natural_and_base_2_states_differ_by_ln_2() -> None:
    (v, s, v_other, s_other), (want, want_s) = in_place(torch.float32)
    got, got_s = sgl_kernel.merge_state_v2(v, s * math.log(2), v_other, s_other * math.log(2))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(got_s, want_s * math.log(2))


ROWS, HIDDEN = torch.zeros(2, 8), torch.zeros(8)
V, S = torch.zeros(2, 3, 8), torch.zeros(2, 3)
EMPTY = torch.full((2, 3), -math.inf)
REFUSED: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "gemma's weight": ("shapes_differ", "weight", lambda: flashinfer.gemma_rmsnorm(ROWS, HIDDEN[:4])),
    "gemma's residual": (
        "dtypes_differ",
        "residual",
        lambda: flashinfer.gemma_fused_add_rmsnorm(ROWS, ROWS.half(), HIDDEN),
    ),
    "layernorm in half": (
        "dtypes_differ",
        "input",
        lambda: flashinfer.layernorm(ROWS.half(), HIDDEN, HIDDEN),
    ),
    "beta in bfloat16": (
        "dtypes_differ",
        "beta",
        lambda: flashinfer.layernorm(ROWS.bfloat16(), HIDDEN, HIDDEN.bfloat16()),
    ),
    "parts of s": ("wrong_dimensions", "s", lambda: flashinfer.merge_states(V.unsqueeze(1), S)),
    "v strided": (
        "not_contiguous",
        "v",
        lambda: flashinfer.merge_states(torch.zeros(2, 8, 1, 3).permute(0, 2, 3, 1), S.unsqueeze(1)),
    ),
    "v_other": ("shapes_differ", "v_other", lambda: flashinfer.merge_state_in_place(V, S, V[:1], S)),
    "mask of rows": (
        "shapes_differ",
        "mask",
        lambda: flashinfer.merge_state_in_place(V, S, V, S, torch.ones(3, dtype=torch.bool)),
    ),
    "mask in int32": (
        "dtypes_differ",
        "mask",
        lambda: flashinfer.merge_state_in_place(V, S, V, S, torch.ones(2, dtype=torch.int32)),
    ),
    "both empty": ("both_states_empty", "s_a", lambda: sgl_kernel.merge_state_v2(V, EMPTY, V, EMPTY)),
    "head_dim 6": (
        "head_dim_unaligned",
        "v_a",
        lambda: sgl_kernel.merge_state_v2(torch.zeros(2, 3, 6), S, torch.zeros(2, 3, 6), S),
    ),
    "rows of 12 bytes": ("row_unaligned", "input", lambda: sgl_kernel.gelu_and_mul(torch.zeros(2, 6).half())),
    "a slice of a wider projection": (
        "not_contiguous",
        "input",
        lambda: flashinfer.silu_and_mul(torch.zeros(2, 24)[:, :16]),
    ),
    "out between other columns": (
        "not_contiguous",
        "out",
        lambda: flashinfer.silu_and_mul(torch.zeros(2, 16), torch.zeros(2, 16)[:, :8]),
    ),
    "columns as rows": (
        "last_dim_not_contiguous",
        "input",
        lambda: flashinfer.rmsnorm(torch.zeros(8, 2).t(), HIDDEN),
    ),
    "residual of columns": (
        "last_dim_not_contiguous",
        "residual",
        lambda: flashinfer.fused_add_rmsnorm(ROWS, torch.zeros(8, 2).t(), HIDDEN),
    ),
    "one row without its dimension": (
        "wrong_dimensions",
        "input",
        lambda: flashinfer.rmsnorm(HIDDEN, HIDDEN),
    ),
    "heads in a fused norm": (
        "wrong_dimensions",
        "input",
        lambda: flashinfer.fused_add_rmsnorm(V, V.clone(), HIDDEN),
    ),
    "odd": ("odd_width", "input", lambda: flashinfer.gelu_tanh_and_mul(torch.zeros(2, 7))),
    "out": ("shapes_differ", "out", lambda: flashinfer.gelu_and_mul(ROWS, ROWS)),
}


MEASURED = ("both empty", "a slice of a wider projection")
"""What faithful mode makes of these is in test_fake_measured_rows.py."""


@pytest.mark.parametrize("name", REFUSED)
def test_shapes_and_types_are_checked(name: str) -> None:
    code, argument, call = REFUSED[name]
    with pytest.raises(KernelError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert caught.value.text("zh")
    if name in MEASURED:
        return
    with mode.use("faithful"), pytest.raises((NotImplementedError, ValueError, AssertionError, RuntimeError)):
        call()
