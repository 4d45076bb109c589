"""Merging of attention states in sgl_kernel (`sgl_kernel/attention.py` of sglang-kernel 0.4.6): LSE is natural here."""

from __future__ import annotations

import math

import torch
from fake_kernels import mistakes_rows as m
from fake_kernels.checks_rows import require_contiguous, require_rows, require_tensors
from fake_kernels.findings import Finding, settle
from fake_kernels.outcomes import raises
from fake_kernels.states import merged


def merge_state_v2(
    v_a: torch.Tensor,
    s_a: torch.Tensor,
    v_b: torch.Tensor,
    s_b: torch.Tensor,
    v_merged: torch.Tensor | None = None,
    s_merged: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The state over both parts: v [rows, heads, head_dim] of v_a's type, s float32 [rows, heads].

    v_a, v_b: outputs, [rows, heads, head_dim], head_dim a multiple of 16 bytes. s_a, s_b: their natural LSE (as
    flash_attn_with_kvcache gives it, transposed), brought to float32. v_merged=, s_merged= receive the result.
    Two empty states have none: the kernel divides 0 by 0 (merge_attn_states.cu), strict mode refuses.
    """
    require_tensors(v_a=(v_a, (3,)), v_b=(v_b, (3,)), checked=True)
    require_tensors(s_a=(s_a, (2,)), s_b=(s_b, (2,)), checked=True, floats=False)
    heads = v_a.shape[:2]
    s_a, s_b = s_a.to(torch.float32), s_b.to(torch.float32)
    require_rows(
        v_b=(v_b, v_a.shape, v_a.dtype), s_a=(s_a, heads, torch.float32), s_b=(s_b, heads, torch.float32)
    )
    require_contiguous(v_a=v_a, s_a=s_a, v_b=v_b, s_b=s_b)
    pack = 16 // v_a.element_size()
    if v_a.shape[-1] % pack:
        refusal = raises(RuntimeError, f"headsize must be multiple of pack_size:{pack}", "run")
        wide = Finding(m.HEAD_NOT_PACKED, "v_a", {"value": v_a.shape[-1], "pack": pack}, refusal)
        settle([wide], "rows", during="run")
    empty = (s_a == -math.inf) & (s_b == -math.inf)
    settle(
        (
            Finding(m.BOTH_EMPTY, "s_a", {"position": f"{at[0]}, {at[1]}"})
            for at in empty.nonzero().tolist()[:1]
        ),
        "rows",
        during="run",
    )
    v, s = merged(torch.stack([v_a, v_b], dim=1), torch.stack([s_a, s_b], dim=1), base=math.e)
    v, s = v.masked_fill(empty.unsqueeze(-1), math.nan), s.masked_fill(empty, math.nan)
    if v_merged is not None:
        require_tensors(v_merged=(v_merged, (3,)))
        require_rows(v_merged=(v_merged, v_a.shape, v_a.dtype))
        v = v_merged.copy_(v)
    if s_merged is not None:
        require_tensors(s_merged=(s_merged, (2,)))
        require_rows(s_merged=(s_merged, heads, torch.float32))
        s = s_merged.copy_(s)
    return v, s


__all__ = ["merge_state_v2"]
