"""Gated activations of flashinfer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fake_kernels import mistakes_rows as m
from fake_kernels.checks_rows import require_rows
from fake_kernels.findings import Finding, settle
from fake_kernels.outcomes import raises


def silu_and_mul(
    input: torch.Tensor, out: torch.Tensor | None = None, enable_pdl: bool | None = None
) -> torch.Tensor:
    """silu(input[..., :hidden]) * input[..., hidden:], computed in float32.

    input: [..., 2 * hidden]. out= receives the result, [..., hidden]. enable_pdl changes nothing.
    """
    require_rows()
    if input.shape[-1] % 2:
        refusal = raises(ValueError, "The last dimension must be even (2 * hidden_size).", "run")
        odd = Finding(m.ODD_WIDTH, "input", {"value": input.shape[-1]}, refusal)
        settle([odd], "rows", during="run")
    gate, up = input.float().chunk(2, dim=-1)
    result = (F.silu(gate) * up).to(input.dtype)
    if out is None:
        return result
    if out.shape != result.shape:
        refusal = raises(AssertionError, f"{list(out.shape)} != {list(result.shape)}", "run")
        params = {"got": list(out.shape), "expected": list(result.shape)}
        settle([Finding(m.SHAPES_DIFFER, "out", params, refusal)], "rows", during="run")
    require_rows(out=(out, result.shape, input.dtype))
    return out.copy_(result)


__all__ = ["silu_and_mul"]
