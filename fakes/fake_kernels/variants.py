"""Attention variants: what a kernel does to queries, keys, scores and sums, written as small classes.

FlashInfer describes a variant as functions that its kernels call in fixed places (variant_helper.cuh). The
same places exist here under the same names, only that a method gets all scores of one request at once and
not one of them. The library's own options are written in this way too (`standard`), and whoever passes a
class of their own as a JIT variant writes nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

LOG2E = math.log2(math.e)


@dataclass(frozen=True)
class Scores:
    """Where the scores of one request stand; index tensors broadcast to [qo heads, qo_len, kv_len].

    request: position in the batch. qo_idx: row within the request's own rows, int64 [1, qo_len, 1].
    kv_idx: position in its KV, int64 [1, 1, kv_len]. qo_head_idx, kv_head_idx: int64 [qo heads, 1, 1].
    """

    request: int
    qo_len: int
    kv_len: int
    qo_heads: int
    kv_heads: int

    @property
    def qo_idx(self) -> torch.Tensor:
        return torch.arange(self.qo_len).view(1, -1, 1)

    @property
    def kv_idx(self) -> torch.Tensor:
        return torch.arange(self.kv_len).view(1, 1, -1)

    @property
    def qo_head_idx(self) -> torch.Tensor:
        return torch.arange(self.qo_heads).view(-1, 1, 1)

    @property
    def kv_head_idx(self) -> torch.Tensor:
        return self.qo_head_idx.div(self.qo_heads // self.kv_heads, rounding_mode="floor")

    @property
    def own_position(self) -> torch.Tensor:
        """Position in KV of each row's own token, int64 [1, qo_len, 1]: rows are the last of their KV."""
        return self.qo_idx + (self.kv_len - self.qo_len)


class AttentionVariant:
    """What changes nothing; override the places that your variant needs (variant_helper.cuh,
    AttentionVariantBase).

    use_softmax: without it masked scores count 0 and the rest is used as weights as it is, LSE is no use.
    sm_scale_log2: what softmax multiplies transformed scores with, in base 2: log2(e) if they are logits
    already, log2(e) * scale if the transform leaves the scale to it.
    """

    use_softmax = True
    sm_scale_log2: float = LOG2E

    def query_transform(self, q: torch.Tensor, at: Scores) -> torch.Tensor:
        """q [qo_len, qo heads, head_dim] float32, before the product with K."""
        return q

    def key_transform(self, k: torch.Tensor, at: Scores) -> torch.Tensor:
        """k [kv_len, kv heads, head_dim] float32, before the product with Q."""
        return k

    def logits_transform(self, logits: torch.Tensor, at: Scores) -> torch.Tensor:
        """Raw products q @ k, float32 [qo heads, qo_len, kv_len]; returns that shape."""
        return logits

    def logits_mask(self, at: Scores) -> torch.Tensor:
        """Which scores count: bool, broadcasts to [qo heads, qo_len, kv_len]. Joined to the causal mask."""
        return torch.ones(1, 1, 1, dtype=torch.bool)

    def update_m_d(
        self, m: torch.Tensor, d: torch.Tensor, scale: torch.Tensor, at: Scores
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Once a row's scores are summed: m, the largest in base 2, d = sum of 2 ** (score - m), and
        scale = 1, a factor for the output; all [qo heads, qo_len]. Returns the three; m + log2(d) is the LSE.
        """
        return m, d, scale

    def output_transform(
        self, output: torch.Tensor, m: torch.Tensor, d: torch.Tensor, scale: torch.Tensor, at: Scores
    ) -> torch.Tensor:
        """output [qo heads, qo_len, head_dim]: sum of 2 ** (score - m) * V; returns the attention."""
        share = (scale / d).masked_fill(m == -math.inf, 0.0)
        return output * share.unsqueeze(-1)


class ScaledScores(AttentionVariant):
    """Scores times `scale`: logits in nats, as all parts of `standard` after it take and give them."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def logits_transform(self, logits: torch.Tensor, at: Scores) -> torch.Tensor:
        return logits * self.scale


class SoftCap(AttentionVariant):
    """cap * tanh(logit / cap)."""

    def __init__(self, cap: float) -> None:
        self.cap = cap

    def logits_transform(self, logits: torch.Tensor, at: Scores) -> torch.Tensor:
        return self.cap * torch.tanh(logits / self.cap)


class SlidingWindow(AttentionVariant):
    """A row sees `left` positions before its own and `right` after it, -1 for all (variants.cuh)."""

    def __init__(self, left: int, right: int = -1) -> None:
        self.left, self.right = left, right

    def logits_mask(self, at: Scores) -> torch.Tensor:
        seen = torch.ones(1, at.qo_len, at.kv_len, dtype=torch.bool)
        if self.left >= 0:
            seen = seen & (at.kv_idx >= at.own_position - self.left)
        if self.right >= 0:
            seen = seen & (at.kv_idx <= at.own_position + self.right)
        return seen


class Alibi(AttentionVariant):
    """slope * (kv_idx - qo_idx) is added to the logits, a slope a head.

    qo_idx is the row within the request and not its position (variants.cuh; decode.cuh gives 0): outputs
    don't notice, the LSE is larger by slope * (kv_len - qo_len) than with true distances.
    """

    def __init__(self, slopes: torch.Tensor) -> None:
        self.slopes = slopes.view(-1, 1, 1)

    def logits_transform(self, logits: torch.Tensor, at: Scores) -> torch.Tensor:
        return logits + self.slopes * (at.kv_idx - at.qo_idx)


def alibi_slopes(heads: int) -> torch.Tensor:
    """float32 [heads]: 2 ** (-8 i / n) for the largest power of two n <= heads, and for the heads beyond
    every second one of the series with 2 n (flashinfer/utils.py, get_alibi_slopes)."""
    n = 1 << (heads.bit_length() - 1)
    exponents = [8.0 * i / n for i in range(1, n + 1)]
    exponents += [4.0 * i / n for i in range(1, 2 * (heads - n), 2)]
    return torch.tensor([2.0**-e for e in exponents], dtype=torch.float32)


class LlamaRope(AttentionVariant):
    """Rotary embedding of q and k inside the kernel, halves of a head as pairs (prefill.cuh,
    compute_rope_freq): keys at their position in KV, rows of q at `own_position`."""

    def __init__(self, scale: float, theta: float) -> None:
        self.scale, self.theta = scale, theta

    def query_transform(self, q: torch.Tensor, at: Scores) -> torch.Tensor:
        return self._rotated(q, at.own_position.flatten())

    def key_transform(self, k: torch.Tensor, at: Scores) -> torch.Tensor:
        return self._rotated(k, at.kv_idx.flatten())

    def _rotated(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        speed = self.theta ** (-torch.arange(half, dtype=x.dtype) / half) / self.scale
        angle = (positions.to(x.dtype).unsqueeze(1) * speed).unsqueeze(1)
        first, second = x[..., :half], x[..., half:]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class CustomMask(AttentionVariant):
    """Bits that say which scores count, read as the kernel reads them (variants.cuh, LogitsMask).

    bits: uint8 [bytes], least significant bit first. starts: the byte at which each request's bits begin;
    row after row, kv_len bits a row without gaps. Bytes past the end read as 0.
    """

    def __init__(self, bits: torch.Tensor, starts: Sequence[int]) -> None:
        self.bits, self.starts = bits, starts

    def logits_mask(self, at: Scores) -> torch.Tensor:
        offset = at.qo_idx * at.kv_len + at.kv_idx
        memory = torch.cat([self.bits.flatten(), self.bits.new_zeros(1)])
        place = (offset.div(8, rounding_mode="floor") + self.starts[at.request]).clamp(0, len(memory) - 1)
        return (memory[place] >> (offset % 8).to(torch.uint8) & 1).bool()


class Sink(AttentionVariant):
    """A score of each head that takes its share of the softmax and has no value (jit/attention/variants.py,
    AttentionSink). The LSE includes it; a row that sees nothing else is 0 and its LSE is the sink.

    sinks: float [qo heads], logits in nats, not scaled.
    """

    def __init__(self, sinks: torch.Tensor) -> None:
        self.log_sink = sinks.float().view(-1, 1) * LOG2E

    def update_m_d(
        self, m: torch.Tensor, d: torch.Tensor, scale: torch.Tensor, at: Scores
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        log_sink = self.log_sink.to(m.dtype)
        largest = torch.maximum(m, log_sink)
        scale = torch.exp2((m - largest).nan_to_num(nan=-math.inf, neginf=-math.inf))
        share = torch.exp2((log_sink - largest).nan_to_num(nan=-math.inf, neginf=-math.inf))
        return largest, share + d * scale, scale


class Chain(AttentionVariant):
    """Several variants in one kernel: transforms in order, masks joined."""

    def __init__(self, parts: Sequence[AttentionVariant]) -> None:
        self.parts = tuple(parts)

    def query_transform(self, q: torch.Tensor, at: Scores) -> torch.Tensor:
        for part in self.parts:
            q = part.query_transform(q, at)
        return q

    def key_transform(self, k: torch.Tensor, at: Scores) -> torch.Tensor:
        for part in self.parts:
            k = part.key_transform(k, at)
        return k

    def logits_transform(self, logits: torch.Tensor, at: Scores) -> torch.Tensor:
        for part in self.parts:
            logits = part.logits_transform(logits, at)
        return logits

    def logits_mask(self, at: Scores) -> torch.Tensor:
        seen = super().logits_mask(at)
        for part in self.parts:
            seen = seen & part.logits_mask(at)
        return seen

    def update_m_d(
        self, m: torch.Tensor, d: torch.Tensor, scale: torch.Tensor, at: Scores
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        for part in self.parts:
            m, d, factor = part.update_m_d(m, d, torch.ones_like(scale), at)
            scale = scale * factor
        return m, d, scale


@dataclass(frozen=True)
class Variant:
    """What one call does to its scores.

    scale: factor of the scores. causal: row j of n sees KV positions up to kv_len - n + j (bottom-right).
    window_left / window_right: how many positions before / after its own a row sees, -1 for all.
    soft_cap: c * tanh(score / c) if positive, after scaling. more: further parts, in order.
    own: makes a caller's variant for the scores of a request; it stands in place of scale, window, cap and
    `more`, and only the causal mask stays.
    """

    scale: float
    causal: bool = True
    window_left: int = -1
    window_right: int = -1
    soft_cap: float = 0.0
    more: tuple[AttentionVariant, ...] = ()
    own: Callable[[Scores], AttentionVariant] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether this is softmax attention with at most a causal mask."""
        windows = self.window_left >= 0 or self.window_right >= 0
        return not windows and self.soft_cap <= 0 and not self.more and self.own is None

    def causal_mask(self, at: Scores) -> torch.Tensor:
        """bool [1, qo_len, kv_len]: what the kernel's own mask mode lets through."""
        if self.causal:
            return at.kv_idx <= at.own_position
        return torch.ones(1, at.qo_len, at.kv_len, dtype=torch.bool)

    def at(self, at: Scores) -> AttentionVariant:
        """The variant for the scores of one request."""
        if self.own is not None:
            return self.own(at)
        parts: list[AttentionVariant] = [ScaledScores(self.scale)]
        if self.soft_cap > 0:
            parts.append(SoftCap(self.soft_cap))
        if self.window_left >= 0 or self.window_right >= 0:
            parts.append(SlidingWindow(self.window_left, self.window_right))
        return Chain([*parts, *self.more])
