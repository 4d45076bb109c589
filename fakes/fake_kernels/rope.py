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
        return self.at(torch.arange(0, rotary_dim, 2), rotary_dim)

    def at(self, places: torch.Tensor, rotary_dim: int) -> torch.Tensor:
        """float64: those of the pairs whose numbers are places / 2."""
        exponent = places.double() / max(1, rotary_dim)
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


def lane(head_dim: int) -> int | None:
    """Dimensions that a thread turns at once; None for heads that no kernel is built for."""
    return max(8, head_dim // 32) if head_dim in (64, 128, 256, 512) else None


def turned_askew(
    x: torch.Tensor, positions: torch.Tensor, frequencies: Frequencies, rotary_dim: int, interleave: bool
) -> torch.Tensor:
    """x [tokens, heads, head_dim] turned as the kernels do it for a rotary_dim that their vectors don't divide: whole
    vectors turn, and partners behind a head (the GPU's next memory) are looked for in the same head."""
    head_dim = x.shape[-1]
    vector = lane(head_dim) or 1
    half = rotary_dim // 2
    dims = torch.arange(head_dim)
    first = dims - dims % vector
    if interleave:
        minus, partners, places = dims % 2 == 0, dims ^ 1, dims - dims % 2
    else:
        minus = first < half
        partners = torch.where(minus, dims + half, dims - half).remainder(head_dim)
        places = 2 * (dims % half)
    told = positions.double().unsqueeze(1) * frequencies.at(places, rotary_dim)
    cos, sin = told.cos().float().unsqueeze(1), told.sin().float().unsqueeze(1)
    work = x.to(torch.promote_types(x.dtype, torch.float32))
    whole = work * cos + torch.where(minus, -1.0, 1.0) * work[..., partners] * sin
    return torch.where(first < rotary_dim, whole, work).to(x.dtype)


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleave: bool) -> torch.Tensor:
    """x [tokens, heads, head_dim] with its first dimensions turned, of x's type, rounded once.

    cos, sin: float32 [tokens, rotary_dim / 2].
    """
    half = cos.shape[1]
    if half == 0:
        return x.clone()
    work = x.to(torch.promote_types(x.dtype, torch.float32))
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    head = work[..., : 2 * half]
    first, second = (head[..., 0::2], head[..., 1::2]) if interleave else head.split(half, dim=-1)
    pairs = (first * cos - second * sin, second * cos + first * sin)
    joined = torch.stack(pairs, dim=-1).flatten(-2) if interleave else torch.cat(pairs, dim=-1)
    return torch.cat([joined, work[..., 2 * half :]], dim=-1).to(x.dtype)
