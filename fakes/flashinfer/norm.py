"""Norms of flashinfer: computed in float32, rounded once on the way out. enable_pdl changes nothing."""

from __future__ import annotations

import torch
from fake_kernels.checks_rows import (
    acted,
    require_apart,
    require_last_dim,
    require_numbers,
    require_room,
    require_rows,
    require_tensors,
    same_widths,
    taken_bits,
)
from fake_kernels.gated import rms_normed
from fake_kernels.memory import bits


def rmsnorm(
    input: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-06,
    out: torch.Tensor | None = None,
    enable_pdl: bool | None = None,
) -> torch.Tensor:
    """input / sqrt(mean(input^2) + eps) * weight along the last dimension.

    input: [rows, hidden] or [rows, heads, head_dim]. weight: [last dimension], same type. out= receives the result.
    """
    return _rmsnorm(input, weight, eps, out, 0.0)


def fused_add_rmsnorm(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-06,
    enable_pdl: bool | None = None,
) -> None:
    """In place: residual += input, then input = rmsnorm(residual). Returns None.

    input, residual: [rows, hidden]. weight: [hidden]. The norm sees the sum before it is rounded to
    residual's type, as the kernel's registers do.
    """
    _fused_add_rmsnorm(input, residual, weight, eps, 0.0)


def gemma_rmsnorm(
    input: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-06,
    out: torch.Tensor | None = None,
    enable_pdl: bool | None = None,
) -> torch.Tensor:
    """`rmsnorm` of [rows, hidden] with 1 + weight in place of weight, as Gemma stores its norms."""
    return _rmsnorm(input, weight, eps, out, 1.0)


def gemma_fused_add_rmsnorm(
    input: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-06,
    enable_pdl: bool | None = None,
) -> None:
    """`fused_add_rmsnorm` with 1 + weight in place of weight."""
    _fused_add_rmsnorm(input, residual, weight, eps, 1.0)


def layernorm(
    input: torch.Tensor, gemma: torch.Tensor, beta: torch.Tensor, eps: float = 1e-06
) -> torch.Tensor:
    """(input - mean) / sqrt(variance + eps) * gemma + beta along the last dimension, of input's type.

    input: bfloat16 [rows, hidden] (the kernel takes no other type; the fake float32 too). gemma (a slip of the
    library's for gamma) and beta: float32 [hidden].
    """
    require_tensors(input=(input, (2,)), gemma=(gemma, (1,)), beta=(beta, (1,)))
    require_numbers(eps=eps)
    given = torch.float32 if input.dtype == torch.float32 else torch.bfloat16
    hidden = input.shape[-1:]
    require_rows(
        input=(input, input.shape, given),
        gemma=(gemma, hidden, torch.float32),
        beta=(beta, hidden, torch.float32),
    )
    require_last_dim(input=input, gemma=gemma, beta=beta)
    rows = input.float()
    centred = rows - rows.mean(dim=-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps)
    return (centred * scale * gemma + beta).to(input.dtype)


def _rmsnorm(
    input: torch.Tensor, weight: torch.Tensor, eps: float, out: torch.Tensor | None, weight_bias: float
) -> torch.Tensor:
    if weight_bias:  # gemma's entry takes rows only, and says so
        require_tensors(checked=True, input=(input, (2,)))
    require_tensors(input=(input, (2, 3)), weight=(weight, (1,)))
    require_numbers(eps=eps)
    acted(same_widths(input, weight=weight))
    require_last_dim(input=input, weight=weight)
    acted(taken_bits(weight=(weight, input)))
    weight = _seen_as(weight, input.dtype)
    result = rms_normed(input.float(), weight, eps, weight_bias).to(input.dtype)
    if out is None:
        return result
    require_tensors(out=(out, (2, 3)))
    require_rows(out=(out, input.shape, out.dtype))
    require_last_dim(out=out)
    require_room(out=out)
    if acted(taken_bits(out=(out, input))) is not None:
        _in_memory(out, input.dtype).copy_(result)
        return out
    return out.copy_(result)


def _fused_add_rmsnorm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, weight_bias: float
) -> None:
    require_tensors(input=(input, (2,)), residual=(residual, (2,)), weight=(weight, (1,)))
    require_numbers(eps=eps)
    acted(same_widths(input, residual=residual, weight=weight))
    require_last_dim(input=input, residual=residual, weight=weight)
    acted(taken_bits(residual=(residual, input), weight=(weight, input)))
    require_room(input=input, residual=residual)
    require_apart(input=input, residual=residual)
    weight, held = _seen_as(weight, input.dtype), residual
    if residual.dtype != input.dtype:
        held = _in_memory(residual, input.dtype)
    total = input.float() + held.float()
    held.copy_(total)
    input.copy_(rms_normed(total, weight, eps, weight_bias))


def _seen_as(weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A weight whose bits are taken for numbers of `dtype`."""
    return weight if weight.dtype == dtype else bits(weight, dtype, weight.shape)


def _in_memory(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The beginning of the tensor's memory as one of its shape and of `dtype`, which is no wider: a kernel steps from
    row to row by as many entries, of its own type."""
    view = tensor.view(dtype)
    return view.as_strided(tensor.shape, tensor.stride(), view.storage_offset())


__all__ = ["fused_add_rmsnorm", "gemma_fused_add_rmsnorm", "gemma_rmsnorm", "layernorm", "rmsnorm"]
