"""Rotary embedding: turning pairs of dimensions by an angle that grows with the position.

Two layouts of pairs. "neox" (the default, half-split): dimension i turns with i + rotary_dim / 2.
Interleaved: dimension 2i turns with 2i + 1. Dimensions from rotary_dim on stay as they are.
Angles are computed in float64 and rounded to float32, which is where the kernels begin: their fast
exp2 and sincos drift by about position * 1e-7 radians (pos_enc.cuh, BatchQKApplyRotaryPosIdsKernel).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Frequencies:
    """The angle per position of each pair: theta ** (-2i / rotary_dim), divided by `scale`.

    Llama 3.1 keeps fast pairs as they are, divides slow ones by scale and blends in between, by how many
    turns a pair makes in old_context_len (pos_enc.cuh: smooth_a, smooth_b). old_context_len None: plain.
    """

    scale: float
    theta: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    old_context_len: float | None = None

    @property
    def arguments(self) -> dict[str, object]:
        """The numbers by the names that callers give them."""
        return {
            "rope_scale": self.scale,
            "rope_theta": self.theta,
            "low_freq_factor": self.low_freq_factor,
            "high_freq_factor": self.high_freq_factor,
            "old_context_len": self.old_context_len,
        }

    def per_pair(self, rotary_dim: int) -> torch.Tensor:
        """float64 [rotary_dim / 2]."""
        exponent = torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim
        fast = self.theta**-exponent
        if self.old_context_len is None:
            return fast / self.scale
        low, high = self.low_freq_factor, self.high_freq_factor
        turns = self.old_context_len * fast / (2 * math.pi)
        keep = ((turns - low) / (high - low)).clamp(0, 1)
        return (1 - keep) * fast / self.scale + keep * fast


def angles(
    positions: torch.Tensor, frequencies: Frequencies, rotary_dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin of every pair at every position: float32 [len(positions), rotary_dim / 2] each."""
    told = positions.double().unsqueeze(1) * frequencies.per_pair(rotary_dim)
    return told.cos().float(), told.sin().float()


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleave: bool) -> torch.Tensor:
    """x [tokens, heads, head_dim] with its first dimensions turned, of x's type, rounded once.

    cos, sin: float32 [tokens, rotary_dim / 2].
    """
    half = cos.shape[1]
    work = x.to(torch.promote_types(x.dtype, torch.float32))
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    head = work[..., : 2 * half]
    first, second = (head[..., 0::2], head[..., 1::2]) if interleave else head.split(half, dim=-1)
    pairs = (first * cos - second * sin, second * cos + first * sin)
    joined = torch.stack(pairs, dim=-1).flatten(-2) if interleave else torch.cat(pairs, dim=-1)
    return torch.cat([joined, work[..., 2 * half :]], dim=-1).to(x.dtype)
