"""Gated activations and norms, in float32 and rounded once: what flashinfer and sgl_kernel share."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fake_kernels import mistakes_rows as m
from fake_kernels.checks_rows import require_dense, require_rows, require_tensors
from fake_kernels.findings import Finding, settle
from fake_kernels.memory import dense
from fake_kernels.outcomes import UNMEASURED, Outcome, raises

Activation = Callable[[torch.Tensor], torch.Tensor]


def act_and_mul(
    activation: Activation, input: torch.Tensor, out: torch.Tensor | None, strided: Outcome | None = None
) -> torch.Tensor:
    """activation(input[..., :hidden]) * input[..., hidden:], into `out` [..., hidden] if given. strided: what comes of an
    input that is not contiguous, where it isn't what was measured."""
    require_tensors(input=(input, ()))
    if input.shape[-1] % 2:
        refusal = raises(ValueError, "The last dimension must be even (2 * hidden_size).", "run")
        odd = Finding(m.ODD_WIDTH, "input", {"value": input.shape[-1]}, refusal)
        settle([odd], "rows", during="run")
    require_dense("input", input, strided)
    gate, up = dense(input).float().chunk(2, dim=-1)
    result = (activation(gate) * up).to(input.dtype)
    if out is None:
        return result
    require_tensors(out=(out, ()))
    if out.shape != result.shape:
        refusal = raises(AssertionError, f"{list(out.shape)} != {list(result.shape)}", "run")
        params = {"got": list(out.shape), "expected": list(result.shape)}
        settle([Finding(m.SHAPES_DIFFER, "out", params, refusal)], "rows", during="run")
    require_rows(out=(out, result.shape, input.dtype))
    require_dense("out", out, UNMEASURED)
    return out.copy_(result)


def rms_normed(
    rows: torch.Tensor, weight: torch.Tensor, eps: float, weight_bias: float = 0.0
) -> torch.Tensor:
    """rows / sqrt(mean(rows^2) + eps) * (weight + weight_bias) along the last dimension, float32."""
    scale = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + eps)
    return rows * scale * (weight.float() + weight_bias)
