"""Merging of attention states: the output and LSE of one query over disjoint parts of its KV."""

from __future__ import annotations

import torch
from fake_kernels import mistakes_rows as m
from fake_kernels.checks_rows import require_contiguous, require_rows, require_tensors
from fake_kernels.findings import Finding, settle
from fake_kernels.states import merged

from flashinfer._multi_level import MultiLevelCascadeAttentionWrapper


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The state over both parts: v [rows, heads, head_dim] of v_a's type, s float32 [rows, heads].

    v_a, v_b: outputs, [rows, heads, head_dim]. s_a, s_b: their LSE in base 2, [rows, heads], brought to
    float32. Two empty states give 0 and -inf.
    """
    require_tensors(v_a=(v_a, (3,)), v_b=(v_b, (3,)), checked=True)
    require_tensors(s_a=(s_a, (2,)), s_b=(s_b, (2,)), checked=True, floats=False)
    heads = v_a.shape[:2]
    s_a, s_b = s_a.to(torch.float32), s_b.to(torch.float32)
    require_rows(
        v_b=(v_b, v_a.shape, v_a.dtype), s_a=(s_a, heads, torch.float32), s_b=(s_b, heads, torch.float32)
    )
    require_contiguous(v_a=v_a, s_a=s_a, v_b=v_b, s_b=s_b)
    return merged(torch.stack([v_a, v_b], dim=1), torch.stack([s_a, s_b], dim=1), base=2)


def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> None:
    """`merge_state` of (v, s) and (v_other, s_other), written to v and s.

    s must be float32: of another type the library merges a copy and leaves the caller's as it was (cascade.py,
    merge_state_in_place; measured). mask: bool or uint8 [rows]; rows with 0 stay as they are.
    """
    require_tensors(v=(v, (3,)), v_other=(v_other, (3,)), checked=True)
    require_tensors(s=(s, (2,)), s_other=(s_other, (2,)), checked=True, floats=False)
    heads = v.shape[:2]
    s_other = s_other.to(torch.float32)
    require_rows(
        v_other=(v_other, v.shape, v.dtype),
        s=(s, heads, s.dtype),
        s_other=(s_other, heads, torch.float32),
    )
    require_contiguous(v=v, s=s, v_other=v_other, s_other=s_other)
    if mask is not None:
        require_tensors(mask=(mask, (1,)), checked=True, floats=False)
        require_rows(mask=(mask, v.shape[:1], torch.uint8 if mask.dtype == torch.uint8 else torch.bool))
    stale = None
    if s.dtype != torch.float32:
        stale = settle([Finding(m.LSE_NOT_UPDATED, "s", {"dtype": str(s.dtype)})], "rows", during="run")
    told = torch.stack([s.to(torch.float32), s_other], dim=1)
    v_merged, s_merged = merged(torch.stack([v, v_other], dim=1), told, base=2)
    chosen = slice(None) if mask is None else mask.bool()
    v[chosen] = v_merged[chosen]
    if stale is None:
        s[chosen] = s_merged[chosen]


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The state over all parts: v [rows, heads, head_dim] of v's type, s float32 [rows, heads].

    v: [rows, parts, heads, head_dim]. s: [rows, parts, heads], LSE in base 2, brought to float32.
    No parts: 0 and -inf.
    """
    require_tensors(v=(v, (4,)), checked=True)
    require_tensors(s=(s, (3,)), checked=True, floats=False)
    s = s.to(torch.float32)
    require_rows(s=(s, v.shape[:3], torch.float32))
    require_contiguous(v=v, s=s)
    return merged(v, s, base=2)


__all__ = ["MultiLevelCascadeAttentionWrapper", "merge_state", "merge_state_in_place", "merge_states"]
