"""Norms and gated activations of sgl_kernel (`sgl_kernel/elementwise.py` of sglang-kernel 0.4.6).

The norms call flashinfer's, as the library does where it finds that package.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from fake_kernels import mistakes_rows as m
from fake_kernels.checks_rows import require_tensors
from fake_kernels.findings import Finding, settle
from fake_kernels.gated import Activation, act_and_mul
from fake_kernels.outcomes import UNMEASURED
from flashinfer import norm


def rmsnorm(
    input: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    out: torch.Tensor | None = None,
    enable_pdl: bool | None = None,
) -> torch.Tensor:
    """`flashinfer.rmsnorm`."""
    return norm.rmsnorm(input, weight, eps, out, enable_pdl)


def fused_add_rmsnorm(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    enable_pdl: bool | None = None,
) -> None:
    """`flashinfer.fused_add_rmsnorm`: residual += input, then input = rmsnorm(residual)."""
    norm.fused_add_rmsnorm(input, residual, weight, eps, enable_pdl)


def gemma_rmsnorm(
    input: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    out: torch.Tensor | None = None,
    enable_pdl: bool | None = None,
) -> torch.Tensor:
    """`flashinfer.gemma_rmsnorm`: 1 + weight in place of weight."""
    return norm.gemma_rmsnorm(input, weight, eps, out, enable_pdl)


def gemma_fused_add_rmsnorm(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    enable_pdl: bool | None = None,
) -> None:
    """`flashinfer.gemma_fused_add_rmsnorm`."""
    norm.gemma_fused_add_rmsnorm(input, residual, weight, eps, enable_pdl)


def silu_and_mul(input: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """silu(gate) * up of input [..., 2 * hidden]; ValueError unless a row is a multiple of 16 bytes."""
    return _packed(F.silu, input, out)


def gelu_tanh_and_mul(input: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """gelu(gate) * up with the tanh approximation; rows as in `silu_and_mul`."""
    return _packed(functools.partial(F.gelu, approximate="tanh"), input, out)


def gelu_and_mul(input: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """gelu(gate) * up with the exact gelu; rows as in `silu_and_mul`."""
    return _packed(F.gelu, input, out)


def _packed(activation: Activation, input: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    require_tensors(input=(input, ()))
    if input.shape[-1] * input.element_size() % 16:
        params = {"value": input.shape[-1], "bytes": input.shape[-1] * input.element_size()}
        settle([Finding(m.ROW_NOT_PACKED, "input", params)], "rows", during="run")
    return act_and_mul(activation, input, out, strided=UNMEASURED)


__all__ = [
    "fused_add_rmsnorm",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "gemma_fused_add_rmsnorm",
    "gemma_rmsnorm",
    "rmsnorm",
    "silu_and_mul",
]
