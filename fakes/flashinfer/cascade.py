"""Merging of attention states: the output and LSE of one query over two disjoint parts of its KV."""

from __future__ import annotations

import math

import torch
from fake_kernels.checks_rows import require_contiguous, require_rows


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The state over both parts: v [rows, heads, head_dim] of v_a's type, s float32 [rows, heads].

    v_a, v_b: outputs, [rows, heads, head_dim]. s_a, s_b: their LSE in base 2, [rows, heads], brought to
    float32. Two empty states give 0 and -inf.
    """
    heads = v_a.shape[:2]
    s_a, s_b = s_a.to(torch.float32), s_b.to(torch.float32)
    require_rows(
        v_b=(v_b, v_a.shape, v_a.dtype), s_a=(s_a, heads, torch.float32), s_b=(s_b, heads, torch.float32)
    )
    require_contiguous(v_a=v_a, s_a=s_a, v_b=v_b, s_b=s_b)
    largest = torch.maximum(s_a, s_b)
    anchor = largest.masked_fill(largest == -math.inf, 0.0)
    weight_a, weight_b = torch.exp2(s_a - anchor), torch.exp2(s_b - anchor)
    total = weight_a + weight_b
    share = (1 / total).masked_fill(total == 0, 0.0)
    merged = v_a.float() * (weight_a * share).unsqueeze(-1) + v_b.float() * (weight_b * share).unsqueeze(-1)
    return merged.to(v_a.dtype), torch.log2(total) + anchor


__all__ = ["merge_state"]
