"""RMS norm, and the residual stream that it is applied to.

The mean is taken in float32 whatever the model's dtype, and the weight multiplies after the cast back: the
order of roundings that checkpoints were trained with.
"""

from __future__ import annotations

import torch

from minisgl.layers.base import BaseOP


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension; x [..., n], weight [n]. A new tensor."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


class RMSNorm(BaseOP):
    """[..., size] -> [..., size]."""

    def __init__(self, size: int, eps: float) -> None:
        self._eps = eps
        self.weight = torch.empty(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.weight, self._eps)


class RMSNormFused(RMSNorm):
    """Adds x to the residual stream and norms the sum.

    forward(x, residual) -> (normed, new residual); without a residual, x itself is the stream. Writing both
    steps as one is what lets a kernel read the stream once.
    """

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stream = x if residual is None else x + residual
        return rms_norm(stream, self.weight, self._eps), stream
