"""RMS norms of flashinfer: computed in float32, rounded once on the way out."""

from __future__ import annotations

import torch
from fake_kernels.checks_rows import require_rows


def rmsnorm(
    input: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-06,
    out: torch.Tensor | None = None,
    enable_pdl: bool | None = None,
) -> torch.Tensor:
    """input / sqrt(mean(input^2) + eps) * weight along the last dimension.

    input: [..., hidden]. weight: [hidden], same type. out= receives the result. enable_pdl changes nothing.
    """
    require_rows(weight=(weight, input.shape[-1:], input.dtype))
    result = _normed(input.float(), weight, eps).to(input.dtype)
    if out is None:
        return result
    require_rows(out=(out, input.shape, input.dtype))
    return out.copy_(result)


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
    require_rows(
        residual=(residual, input.shape, input.dtype), weight=(weight, input.shape[-1:], input.dtype)
    )
    total = input.float() + residual.float()
    residual.copy_(total)
    input.copy_(_normed(total, weight, eps))


def _normed(rows: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + eps) * weight.float()


__all__ = ["fused_add_rmsnorm", "rmsnorm"]
