"""Attention states: the output and LSE of one query over a part of its KV, and over several parts together.

Two empty states (LSE -inf) make an empty one: output 0, LSE -inf (state.cuh and cascade.cuh of flashinfer
0.7.2.post1, which keep the NaN of (-inf) - (-inf) out).
"""

from __future__ import annotations

import math

import torch


def merged(v: torch.Tensor, s: torch.Tensor, *, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The state over all parts: v [rows, heads, head_dim] of v's type, s float32 [rows, heads].

    v: [rows, parts, heads, head_dim]. s: [rows, parts, heads], LSE in `base` (2 in flashinfer, e in sgl_kernel).
    No parts: an empty state.
    """
    rows, parts, heads, head_dim = v.shape
    if parts == 0:
        return v.new_zeros(rows, heads, head_dim), v.new_full((rows, heads), -math.inf, dtype=torch.float32)
    work = torch.promote_types(v.dtype, torch.float32)
    unit = math.log(base)
    told = s.to(work)
    largest = told.amax(dim=1)
    anchor = largest.masked_fill(largest == -math.inf, 0.0)
    weights = torch.exp((told - anchor.unsqueeze(1)) * unit)
    total = weights.sum(dim=1)
    share = (1 / total).masked_fill(total == 0, 0.0)
    mixed = (v.to(work) * (weights * share.unsqueeze(1)).unsqueeze(-1)).sum(dim=1)
    return mixed.to(v.dtype), (torch.log(total) / unit + anchor).to(torch.float32)
