"""Attention of a single request over contiguous K and V, without plan or pages.

Interface of flashinfer 0.7.2.post1 (`flashinfer/prefill.py`, `flashinfer/decode.py`), computed on the CPU.
"""

from __future__ import annotations

import functools
import math

import torch
from fake_kernels.checks_masks import MaskOf
from fake_kernels.checks_ragged import check_dense, check_layout
from fake_kernels.checks_values import check_tensors
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.mistakes_wrappers import CAUSAL_SHORT_KV, LAYOUT_SHAPE
from fake_kernels.outcomes import Path
from fake_kernels.reference import Layout, Request, attend
from fake_kernels.variants import AttentionVariant, CustomMask, Variant

from flashinfer._options import (
    DTYPES,
    check_positions,
    only_default,
    path_of,
    pick_backend,
    position_parts,
    refuse_option,
    require_numbers,
)
from flashinfer._paged import require_window

_LN2 = math.log(2.0)


def single_prefill_with_kv_cache(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale_q: torch.Tensor | None = None,
    scale_k: torch.Tensor | None = None,
    scale_v: torch.Tensor | None = None,
    o_dtype: torch.dtype | None = None,
    custom_mask: torch.Tensor | None = None,
    packed_custom_mask: torch.Tensor | None = None,
    causal: bool = False,
    kv_layout: str = "NHD",
    pos_encoding_mode: str = "NONE",
    use_fp16_qk_reduction: bool = False,
    sm_scale: float | None = None,
    window_left: int = -1,
    logits_soft_cap: float | None = None,
    rope_scale: float | None = None,
    rope_theta: float | None = None,
    backend: str = "auto",
    return_lse: bool = False,
    kv_cache_sf: tuple[torch.Tensor, torch.Tensor] | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """out [qo_len, num_qo_heads, head_dim_vo] of q's type, with return_lse also the LSE in base 2, float32
    [qo_len, num_qo_heads].

    q: [qo_len, num_qo_heads, head_dim_qk]. k, v: [kv_len, num_kv_heads, head_dim_qk or vo] (NHD), or heads
    first (HND, not on fa3). causal is bottom-right and False unless given. custom_mask: bool [qo_len, kv_len], True =
    seen, in place of causal; packed_custom_mask: its bits (`packbits`, "little"), looked at first.
    """
    arguments = dict(locals())
    require_context()
    require_numbers(arguments, "fa2", during="run")
    settle(check_tensors("shape", q=q, k=k, v=v), "fa2", during="run")
    only_default(
        scale_q=(scale_q, None),
        scale_k=(scale_k, None),
        scale_v=(scale_v, None),
        o_dtype=(o_dtype, q.dtype if o_dtype is not None else None),
        use_fp16_qk_reduction=(use_fp16_qk_reduction, False),
        kv_cache_sf=(kv_cache_sf, None),
        k_scale=(k_scale, None),
        v_scale=(v_scale, None),
    )
    if backend not in ("auto", "fa2", "fa3"):
        raise not_modelled("backend", backend)
    masked = custom_mask is not None or packed_custom_mask is not None
    if backend == "auto":
        dims = (q.shape[-1], v.shape[-1])
        backend = pick_backend(q.dtype, *dims, mask=masked, positions=pos_encoding_mode)
    path = path_of(backend)
    layout = _layout(kv_layout, path)
    check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
    require_window(window_left)
    settle(check_layout(layout, path), path, during="run")
    settle(check_dense(q, k, v, layout, path), path, during="run")
    kv_len = k.shape[0] if layout == "NHD" else k.shape[1]
    if causal and not masked and path == "fa2" and kv_len < q.shape[0]:
        settle([Finding(CAUSAL_SHORT_KV, "k", {"rows": q.shape[0], "kv": kv_len})], path, during="run")
    parts: tuple[AttentionVariant, ...] = position_parts(
        pos_encoding_mode, rope_scale, rope_theta, q.shape[1]
    )
    if masked:
        known = isinstance(custom_mask, torch.Tensor)
        flat = custom_mask.to(torch.bool) if known else custom_mask  # packbits takes any type
        mask = MaskOf(flat, packed_custom_mask, [q.shape[0]], [kv_len])
        settle(mask.findings(path), path, during="run")
        bits, starts = mask.read()
        parts = (*parts, CustomMask(bits, starts.tolist()))
    variant = Variant(
        scale=q.shape[-1] ** -0.5 if sm_scale is None else sm_scale,
        causal=causal and not masked,
        window_left=window_left,
        soft_cap=logits_soft_cap or 0.0,
        more=parts,
    )
    return _attend(q, k, v, layout, variant, return_lse)


single_prefill_with_kv_cache_return_lse = functools.partial(single_prefill_with_kv_cache, return_lse=True)


def single_decode_with_kv_cache(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_layout: str = "NHD",
    pos_encoding_mode: str = "NONE",
    use_tensor_cores: bool = False,
    q_scale: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
    window_left: int = -1,
    logits_soft_cap: float | None = None,
    sm_scale: float | None = None,
    rope_scale: float | None = None,
    rope_theta: float | None = None,
    return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """out [num_qo_heads, head_dim] of q's type, with return_lse also the LSE in base 2, float32
    [num_qo_heads].

    q: [num_qo_heads, head_dim]. k, v: [kv_len, num_kv_heads, head_dim] (NHD), or heads first (HND).
    """
    arguments = dict(locals())
    require_context()
    require_numbers(arguments, "dec", during="run")
    only_default(q_scale=(q_scale, None), k_scale=(k_scale, None), v_scale=(v_scale, None))
    path: Path = "tc" if use_tensor_cores else "dec"
    settle(check_tensors("shape", q=q, k=k, v=v), path, during="run")
    layout = _layout(kv_layout, path)
    check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
    require_window(window_left)
    if q.ndim != 2:
        params = {"shape": list(q.shape), "expected": "[num_qo_heads, head_dim]"}
        settle([Finding(LAYOUT_SHAPE, "q", params)], path, during="run")
    rows = q.unsqueeze(0)
    settle(check_dense(rows, k, v, layout, path), path, during="run")
    variant = Variant(
        scale=q.shape[-1] ** -0.5 if sm_scale is None else sm_scale,
        causal=False,
        window_left=window_left,
        soft_cap=logits_soft_cap or 0.0,
        more=position_parts(pos_encoding_mode, rope_scale, rope_theta, q.shape[0]),
    )
    if not return_lse:
        return _attend(rows, k, v, layout, variant, False)[0]
    out, lse = _attend(rows, k, v, layout, variant, True)
    return out[0], lse[0]


def _layout(kv_layout: str, path: Path) -> Layout:
    if kv_layout not in ("NHD", "HND"):
        message = f"Invalid kv_layout {kv_layout}"
        refuse_option("kv_layout", kv_layout, "NHD, HND", KeyError, message, path)
    return "NHD" if kv_layout == "NHD" else "HND"


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: Layout, variant: Variant, with_lse: bool
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    if q.dtype not in DTYPES:
        raise not_modelled("q", str(q.dtype))
    if layout == "HND":
        k, v = k.transpose(0, 1), v.transpose(0, 1)
    request = Request(0, q.shape[0], torch.arange(k.shape[0]))
    out, lse = attend(q, k.unsqueeze(1), v.unsqueeze(1), [request], variant, with_lse=with_lse)
    return out if lse is None else (out, lse / _LN2)


__all__ = [
    "single_decode_with_kv_cache",
    "single_prefill_with_kv_cache",
    "single_prefill_with_kv_cache_return_lse",
]
