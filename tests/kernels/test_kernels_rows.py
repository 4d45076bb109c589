"""Norms, gated activations and merging of states, held to float64. sgl_kernel's are held to flashinfer's formulas
as well; its states are natural where flashinfer's are of base 2."""

from __future__ import annotations

import math
from collections.abc import Callable

import flashinfer
import pytest
import sgl_kernel
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from place import DEVICE, HALF, close, normal, rng, there

PACKAGES = {"flashinfer": flashinfer, "sgl_kernel": sgl_kernel}
seeds = st.integers(0, 10000)
widths = st.sampled_from([(128, torch.float16), (1024, torch.float16), (128, torch.bfloat16)])
"""Norms are compiled for each width and type: few of them."""

dtypes = st.sampled_from(HALF)


def normed(x: torch.Tensor, weight: torch.Tensor, eps: float, bias: float = 0.0) -> torch.Tensor:
    x = x.cpu().double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * (weight.cpu().double() + bias)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    seeds,
    st.integers(1, 9),
    widths,
    st.sampled_from(["rmsnorm", "gemma_rmsnorm"]),
    st.sampled_from(sorted(PACKAGES)),
    st.sampled_from([1e-6, 1e-5]),
)
def test_rms_norms(
    seed: int, rows: int, width: tuple[int, torch.dtype], name: str, package: str, eps: float
) -> None:
    hidden, dtype = width
    norm = getattr(PACKAGES[package], name)
    x = normal(rng(seed), rows, hidden, dtype=dtype)
    weight = normal(rng(seed + 1), hidden, dtype=dtype)
    want = normed(x, weight, eps, bias=float(name.startswith("gemma")))
    got = norm(x, weight, eps)
    close(got, want, dtype)
    out = torch.empty_like(x)
    assert norm(x, weight, eps, out=out) is out
    assert torch.equal(out, got)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    seeds,
    st.integers(1, 9),
    widths,
    st.sampled_from(["fused_add_rmsnorm", "gemma_fused_add_rmsnorm"]),
    st.sampled_from(sorted(PACKAGES)),
)
def test_sums_and_norms_in_one(
    seed: int, rows: int, width: tuple[int, torch.dtype], name: str, package: str
) -> None:
    hidden, dtype = width
    x = normal(rng(seed), rows, hidden, dtype=dtype)
    residual = normal(rng(seed + 1), rows, hidden, dtype=dtype)
    weight = normal(rng(seed + 2), hidden, dtype=dtype)
    total = x.cpu().double() + residual.cpu().double()
    want = normed(total, weight, 1e-6, bias=float(name.startswith("gemma")))
    assert getattr(PACKAGES[package], name)(x, residual, weight) is None
    close(residual, total, dtype)
    close(x, want, dtype)


def test_a_norm_of_each_head() -> None:
    x = normal(rng(0), 5, 3, 64, dtype=torch.float16)
    weight = normal(rng(1), 64, dtype=torch.float16)
    close(flashinfer.rmsnorm(x, weight), normed(x, weight, 1e-6), torch.float16)
    with pytest.raises(RuntimeError, match="input must be a 2D tensor"):
        flashinfer.gemma_rmsnorm(x, weight)


@settings(derandomize=True, deadline=None, max_examples=10)
@given(seeds, st.integers(1, 9))
def test_layernorm(seed: int, rows: int) -> None:
    hidden = 128
    x = normal(rng(seed), rows, hidden, dtype=torch.bfloat16)
    gamma = normal(rng(seed + 1), hidden, dtype=torch.float32)
    beta = normal(rng(seed + 2), hidden, dtype=torch.float32)
    wide = x.cpu().double()
    centred = wide - wide.mean(-1, keepdim=True)
    want = centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * gamma.cpu() + beta.cpu()
    close(flashinfer.layernorm(x, gamma, beta), want, torch.bfloat16)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


GATES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu_and_mul": lambda x: x / (1 + torch.exp(-x)),
    "gelu_and_mul": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_tanh_and_mul": gelu_tanh,
}


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    seeds,
    st.lists(st.integers(1, 4), min_size=1, max_size=2),
    st.sampled_from([8, 64, 200]),
    dtypes,
    st.sampled_from(sorted(GATES)),
    st.sampled_from(sorted(PACKAGES)),
)
def test_gated_activations(
    seed: int, rows: list[int], hidden: int, dtype: torch.dtype, name: str, package: str
) -> None:
    x = normal(rng(seed), *rows, 2 * hidden, dtype=dtype)
    gate, up = x.cpu().double().split(hidden, dim=-1)
    function = getattr(PACKAGES[package], name)
    got = function(x)
    if name == "gelu_tanh_and_mul":
        # On a GPU this tanh is an instruction with a relative error of 2^-11 (jit/activation.py, gelu_tanh).
        bound = (gate * up).abs() / 2 * 2**-11 + 2e-3
        want = GATES[name](gate) * up
        assert bool(((got.cpu().double() - want).abs() <= bound + torch.finfo(dtype).eps * want.abs()).all())
    else:
        close(got, GATES[name](gate) * up, dtype)
    out = torch.empty_like(got)
    assert function(x, out) is out
    assert torch.equal(out, got)


def states(
    seed: int, rows: int, parts: int, heads: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs [rows, parts, heads, 64] and their LSE, some of them empty."""
    generator = rng(seed)
    v = torch.randn(rows, parts, heads, 64, generator=generator)
    s = 3 * torch.randn(rows, parts, heads, generator=generator)
    empty = torch.rand(rows, parts, heads, generator=generator) < 0.25
    s[empty] = -math.inf
    v[empty] = 0
    return there(v.to(dtype)), there(s)


def merged(v: torch.Tensor, s: torch.Tensor, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    v, s = v.cpu().double(), s.cpu().double() * math.log(base)
    total = torch.logsumexp(s, dim=1)
    weights = torch.exp(s - total.masked_fill(total == -math.inf, 0).unsqueeze(1))
    return (weights.unsqueeze(-1) * v).sum(1), total / math.log(base)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seeds, st.integers(1, 6), st.sampled_from([1, 4, 6]), dtypes)
def test_two_states_in_base_2(seed: int, rows: int, heads: int, dtype: torch.dtype) -> None:
    v, s = states(seed, rows, 2, heads, dtype)
    parts = (v[:, 0].contiguous(), s[:, 0].contiguous(), v[:, 1].contiguous(), s[:, 1].contiguous())
    want, want_s = merged(v, s, 2)
    got, got_s = flashinfer.merge_state(*parts)
    close(got, want, dtype)
    close(got_s, want_s, torch.float32, lse=True)
    chosen = torch.rand(rows, generator=rng(seed)) < 0.5
    before = parts[0].clone(), parts[1].clone()
    again = parts[0].clone(), parts[1].clone()
    assert flashinfer.merge_state_in_place(*parts, mask=there(chosen)) is None
    flashinfer.merge_state_in_place(*again, *parts[2:])
    close(again[0], want, dtype)
    close(again[1], want_s, torch.float32, lse=True)
    for now, old, new in zip(parts, before, again, strict=False):
        assert torch.equal(now[there(chosen)], new[there(chosen)])
        assert torch.equal(now[there(~chosen)], old[there(~chosen)])


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seeds, st.integers(1, 6), st.integers(1, 9), st.sampled_from([1, 4]), dtypes)
def test_any_number_of_states(seed: int, rows: int, parts: int, heads: int, dtype: torch.dtype) -> None:
    v, s = states(seed, rows, parts, heads, dtype)
    want, want_s = merged(v, s, 2)
    got, got_s = flashinfer.merge_states(v, s)
    close(got, want, dtype)
    close(got_s, want_s, torch.float32, lse=True)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seeds, st.integers(1, 6), st.sampled_from([1, 4]), dtypes, st.booleans())
def test_two_natural_states(seed: int, rows: int, heads: int, dtype: torch.dtype, own: bool) -> None:
    v, s = states(seed, rows, 2, heads, dtype)
    s[:, 0] = s[:, 0].masked_fill(torch.isneginf(s).all(dim=1), 0.0)
    want, want_s = merged(v, s, math.e)
    parts = (v[:, 0].contiguous(), s[:, 0].contiguous(), v[:, 1].contiguous(), s[:, 1].contiguous())
    outs = (torch.empty_like(parts[0]), torch.empty_like(parts[1])) if own else ()
    got, got_s = sgl_kernel.merge_state_v2(*parts, *outs)
    close(got, want, dtype)
    close(got_s, want_s, torch.float32, lse=True)
    if own:
        assert got is outs[0]
        assert got_s is outs[1]


def test_renormalising_is_flashinfers() -> None:
    probs = there(torch.softmax(torch.randn(3, 50, generator=rng(0)), dim=-1))
    for name, parameter in (("top_k_renorm_prob", 7), ("top_p_renorm_prob", 0.7)):
        got = getattr(sgl_kernel, name)(probs, parameter)
        torch.testing.assert_close(got, getattr(flashinfer, f"{name}s")(probs, parameter))


def test_what_the_library_refuses() -> None:
    x = normal(rng(0), 2, 7, dtype=torch.float16)
    with pytest.raises(ValueError, match="The last dimension must be even"):
        flashinfer.gelu_and_mul(x)
    with pytest.raises(ValueError, match="The pointers must be multiple of 16 bytes"):
        sgl_kernel.silu_and_mul(x[:, :6].contiguous())
    with pytest.raises(AssertionError):
        flashinfer.silu_and_mul(x[:, :6].contiguous(), torch.empty(2, 6, dtype=torch.float16, device=DEVICE))
