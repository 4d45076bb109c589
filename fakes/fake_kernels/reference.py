"""Attention over paged KV, dense and one request at a time: the numbers behind every fake kernel.

Two computations. The plain variant without LSE makes the very `scaled_dot_product_attention` call that
an engine's reference backend makes for a request (same shapes, same mask, same contiguous gathered K
and V), so that a backend on the fakes and the reference backend agree bit for bit. Everything else (LSE,
and what `variants` describes) is computed from the formulas in float32 and agrees with it to 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F

from fake_kernels.variants import Scores, Variant

Layout = Literal["NHD", "HND"]


@dataclass(frozen=True)
class Request:
    """One request of a batch: its rows of q (`start:stop`) and where its KV lies (int64 [kv_len],
    positions in the pool counted in tokens)."""

    start: int
    stop: int
    slots: torch.Tensor


def gather(cache: torch.Tensor, slots: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The K or V of `slots` in order: contiguous [len(slots), heads, head_dim].

    cache: [pages, page_size, heads, head_dim] (NHD) or [pages, heads, page_size, head_dim] (HND).
    """
    by_token = cache if layout == "NHD" else cache.transpose(1, 2)
    pages, page_size, heads, head_dim = by_token.shape
    if by_token.stride(0) == page_size * by_token.stride(1) or page_size == 1:
        flat = by_token.as_strided(
            (pages * page_size, heads, head_dim),
            (by_token.stride(1) if page_size > 1 else by_token.stride(0), *by_token.stride()[2:]),
        )
        return flat.index_select(0, slots)
    page = torch.div(slots, page_size, rounding_mode="floor")
    return by_token[page, slots - page * page_size].contiguous()


def attend(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    requests: Sequence[Request],
    variant: Variant,
    *,
    layout: Layout = "NHD",
    with_lse: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention of a batch.

    q: [rows, q_heads, head_dim]; caches as in `gather`, V may have a head_dim of its own; q_heads a multiple
    of the cache's heads. Requests whose rows q doesn't have are left out.
    Returns out [rows, q_heads, head_dim of V] of q's type and, if asked, the natural LSE, float32
    [rows, q_heads]. Rows that see nothing (or belong to no request) are 0 with LSE -inf.
    """
    out = q.new_zeros(*q.shape[:2], v_cache.shape[-1])
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32) if with_lse else None
    for index, request in enumerate(requests):
        rows = slice(request.start, request.stop)
        if request.stop <= request.start or request.stop > q.shape[0]:
            continue
        if request.slots.numel() == 0 and variant.is_plain:
            continue
        k = gather(k_cache, request.slots, layout)
        v = gather(v_cache, request.slots, layout)
        at = Scores(index, request.stop - request.start, k.shape[0], q.shape[1], k.shape[1])
        if lse is None and variant.is_plain:
            out[rows] = _sdpa(q[rows], k, v, variant, at)
        else:
            out[rows], told = _formula(q[rows], k, v, variant, at)
            if lse is not None:
                lse[rows] = told
    return out, lse


def _sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, variant: Variant, at: Scores) -> torch.Tensor:
    """q [n, q_heads, head_dim], k and v [kv_len, kv_heads, head_dim]; returns [n, q_heads, head_dim]."""
    mixed = F.scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        k.transpose(0, 1).unsqueeze(0),
        v.transpose(0, 1).unsqueeze(0),
        attn_mask=variant.causal_mask(at).squeeze(0),
        scale=variant.scale,
        enable_gqa=True,
    )
    # torch gives 0 to a row whose mask is empty (its softmax is a safe one), as the kernels do.
    return mixed.squeeze(0).transpose(0, 1)


def _formula(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, variant: Variant, at: Scores
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `_sdpa`, from the definition in float32 (float64 stays); LSE natural, float32 [n, q_heads]."""
    given, work = q.dtype, torch.promote_types(q.dtype, torch.float32)
    does = variant.at(at)
    group = at.qo_heads // at.kv_heads
    q = does.query_transform(q.to(work), at)
    k = does.key_transform(k.to(work), at).repeat_interleave(group, dim=1)
    v = v.to(work).repeat_interleave(group, dim=1)
    logits = does.logits_transform(torch.einsum("nhd,khd->hnk", q, k), at)
    seen = (variant.causal_mask(at) & does.logits_mask(at)).expand_as(logits)
    if does.use_softmax:
        logits = (logits * does.sm_scale_log2).masked_fill(~seen, -math.inf)
        m = logits.amax(dim=-1) if at.kv_len else logits.new_full(logits.shape[:2], -math.inf)
        # A row that sees nothing has m = -inf; subtracting 0 instead keeps its weights 0 and not NaN.
        weights = torch.exp2(logits - m.masked_fill(m == -math.inf, 0.0).unsqueeze(-1))
        d = weights.sum(dim=-1)
    else:
        weights = logits.masked_fill(~seen, 0.0)
        m, d = weights.new_zeros(weights.shape[:2]), weights.new_ones(weights.shape[:2])
    m, d, scale = does.update_m_d(m, d, torch.ones_like(d), at)
    out = does.output_transform(torch.einsum("hnk,khd->hnd", weights, v), m, d, scale, at)
    lse = (m + torch.log2(d)).masked_fill(m == -math.inf, -math.inf) * math.log(2.0)
    return out.transpose(0, 1).to(given), lse.transpose(0, 1).to(torch.float32)
