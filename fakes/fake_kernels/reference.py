"""Attention over paged KV, dense and one request at a time: the numbers behind every fake kernel.

Two computations. The plain variant without LSE makes the very `scaled_dot_product_attention` call that
an engine's reference backend makes for a request (same shapes, same mask, same contiguous gathered K
and V), so that a backend on the fakes and the reference backend agree bit for bit. Everything else (LSE,
sliding window, soft cap) is computed from the formulas in float32 and agrees with it to 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F

Layout = Literal["NHD", "HND"]


@dataclass(frozen=True)
class Variant:
    """What a kernel does to the scores between q @ k and softmax.

    scale: factor of the scores. causal: row j of n sees KV positions up to kv_len - n + j (bottom-right).
    window_left / window_right: how many positions before / after its own a row sees, -1 for all.
    soft_cap: c * tanh(score / c) if positive, after scaling.
    """

    scale: float
    causal: bool = True
    window_left: int = -1
    window_right: int = -1
    soft_cap: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether this is softmax attention with at most a causal mask."""
        return self.window_left < 0 and self.window_right < 0 and self.soft_cap <= 0

    def visible(self, rows: int, kv_len: int) -> torch.Tensor:
        """Which KV positions a row sees: bool [rows, kv_len], True = seen."""
        own = torch.arange(kv_len - rows, kv_len).unsqueeze(1)
        kv = torch.arange(kv_len).unsqueeze(0)
        seen = kv <= own if self.causal else torch.ones(rows, kv_len, dtype=torch.bool)
        if self.window_left >= 0:
            seen = seen & (kv >= own - self.window_left)
        if self.window_right >= 0:
            seen = seen & (kv <= own + self.window_right)
        return seen

    def logits(self, scores: torch.Tensor) -> torch.Tensor:
        """Scaled and capped scores, same shape."""
        scores = scores * self.scale
        return self.soft_cap * torch.tanh(scores / self.soft_cap) if self.soft_cap > 0 else scores


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

    q: [rows, q_heads, head_dim]; caches as in `gather`; q_heads a multiple of the cache's heads.
    Returns out [rows, q_heads, head_dim] of q's type and, if asked, the natural LSE, float32
    [rows, q_heads]. Rows that see nothing (or belong to no request) are 0 with LSE -inf.
    """
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32) if with_lse else None
    for request in requests:
        rows = slice(request.start, request.stop)
        if request.stop <= request.start or request.slots.numel() == 0:
            continue
        k = gather(k_cache, request.slots, layout)
        v = gather(v_cache, request.slots, layout)
        if lse is None and variant.is_plain:
            out[rows] = _sdpa(q[rows], k, v, variant)
        else:
            out[rows], told = _formula(q[rows], k, v, variant)
            if lse is not None:
                lse[rows] = told
    return out, lse


def _sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, variant: Variant) -> torch.Tensor:
    """q [n, q_heads, head_dim], k and v [kv_len, kv_heads, head_dim]; returns [n, q_heads, head_dim]."""
    rows, kv_len = q.shape[0], k.shape[0]
    mixed = F.scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        k.transpose(0, 1).unsqueeze(0),
        v.transpose(0, 1).unsqueeze(0),
        attn_mask=variant.visible(rows, kv_len),
        scale=variant.scale,
        enable_gqa=True,
    )
    # torch gives 0 to a row whose mask is empty (its softmax is a safe one), as the kernels do.
    return mixed.squeeze(0).transpose(0, 1)


def _formula(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, variant: Variant
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `_sdpa`, from the definition in float32 (float64 stays); LSE natural, float32 [n, q_heads]."""
    work = torch.promote_types(q.dtype, torch.float32)
    group = q.shape[1] // k.shape[1]
    k = k.to(work).repeat_interleave(group, dim=1)
    v = v.to(work).repeat_interleave(group, dim=1)
    logits = variant.logits(torch.einsum("nhd,khd->hnk", q.to(work), k))
    logits = logits.masked_fill(~variant.visible(q.shape[0], k.shape[0]), -math.inf)
    lse = torch.logsumexp(logits, dim=-1)
    # A row that sees nothing has LSE -inf; subtracting 0 instead keeps its weights 0 and not NaN.
    weights = torch.exp(logits - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1))
    out = torch.einsum("hnk,khd->nhd", weights, v)
    return out.to(q.dtype), lse.transpose(0, 1).to(torch.float32)
