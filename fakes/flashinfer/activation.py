"""Gated activations of flashinfer: activation(gate) * up, with gate and up side by side.

input: [..., 2 * hidden], gate first; computed in float32. out= receives the result, [..., hidden].
ValueError for an odd last dimension, AssertionError for an `out` of another shape. enable_pdl changes nothing.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from fake_kernels.gated import act_and_mul


def silu_and_mul(
    input: torch.Tensor, out: torch.Tensor | None = None, enable_pdl: bool | None = None
) -> torch.Tensor:
    """silu(gate) * up, of input's type."""
    return act_and_mul(F.silu, input, out)


def gelu_tanh_and_mul(
    input: torch.Tensor, out: torch.Tensor | None = None, enable_pdl: bool | None = None
) -> torch.Tensor:
    """gelu(gate) * up with the tanh approximation of gelu, of input's type."""
    return act_and_mul(functools.partial(F.gelu, approximate="tanh"), input, out)


def gelu_and_mul(
    input: torch.Tensor, out: torch.Tensor | None = None, enable_pdl: bool | None = None
) -> torch.Tensor:
    """gelu(gate) * up with the exact gelu (erf), of input's type."""
    return act_and_mul(F.gelu, input, out)


__all__ = ["gelu_and_mul", "gelu_tanh_and_mul", "silu_and_mul"]
