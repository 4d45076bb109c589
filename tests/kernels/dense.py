"""Attention from its definition, in float64 on the CPU, and random batches to hold kernels to it.

Written for itself and not from the fakes: scores as one matrix, masks as one matrix, softmax, nothing shared
with `fake_kernels.reference` but the mathematics.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from place import REAL, i32, normal, rng, there, workspace


@dataclass(frozen=True)
class Rule:
    """What happens to scores. left, right: window, -1 for none. cap: soft cap, 0 for none. scale: None is
    head_dim ** -0.5. slopes: ALiBi, [heads]. sinks: logits, [heads]. rope: (scale, theta)."""

    causal: bool = False
    left: int = -1
    right: int = -1
    cap: float = 0.0
    scale: float | None = None
    slopes: torch.Tensor | None = None
    sinks: torch.Tensor | None = None
    rope: tuple[float, float] | None = None

    @property
    def loose(self) -> float:
        """How much further off than plain attention a GPU may be: its tanh errs by 2 ** -11 of the cap, and
        rotated vectors are rounded once more."""
        if not REAL:
            return 1.0
        return (4.0 if self.cap > 0 else 1.0) * (2.0 if self.rope is not None else 1.0)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rule: Rule, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """q [n, heads, d], k [kv, kv_heads, d], v [kv, kv_heads, dv], mask bool [n, kv]; rows are the last n of kv.

    Returns out [n, heads, dv] and the natural LSE [n, heads], float64; rows that see nothing are 0 and -inf.
    """
    q, k, v = (x.detach().cpu().double() for x in (q, k, v))
    n, kv = q.shape[0], k.shape[0]
    own = torch.arange(n)[:, None] + (kv - n)
    column = torch.arange(kv)[None, :]
    if rule.rope is not None:
        q, k = rotated(q, own[:, 0], *rule.rope), rotated(k, column[0], *rule.rope)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("nhd,khd->hnk", q, k) * (q.shape[2] ** -0.5 if rule.scale is None else rule.scale)
    if rule.slopes is not None:
        scores = scores + rule.slopes.double()[:, None, None] * (column - torch.arange(n)[:, None])
    if rule.cap > 0:
        scores = rule.cap * torch.tanh(scores / rule.cap)
    seen = torch.ones(n, kv, dtype=torch.bool) if mask is None else mask.cpu().clone()
    if rule.causal:
        seen &= column <= own
    if rule.left >= 0:
        seen &= column >= own - rule.left
    if rule.right >= 0:
        seen &= column <= own + rule.right
    scores = scores.masked_fill(~seen, -math.inf)
    if rule.sinks is not None:
        sinks = rule.sinks.detach().cpu().double()[:, None, None].expand(-1, n, 1)
        scores = torch.cat([scores, sinks], dim=-1)
        v = torch.cat([v, torch.zeros_like(v[:1]) if kv else v.new_zeros(1, *v.shape[1:])])
    if scores.shape[-1] == 0:
        return q.new_zeros(n, q.shape[1], v.shape[2]), q.new_full((n, q.shape[1]), -math.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("hnk,khd->nhd", weights, v), scores.logsumexp(-1).t()


def rotated(x: torch.Tensor, positions: torch.Tensor, scale: float, theta: float) -> torch.Tensor:
    """x [n, heads, d] turned by complex numbers: element i of the first half with element i of the second."""
    half = x.shape[2] // 2
    speeds = torch.tensor([1.0 / (scale * theta ** (2 * i / x.shape[2])) for i in range(half)])
    turn = torch.polar(torch.ones(len(positions), half), positions[:, None] * speeds).to(torch.complex128)
    both = torch.complex(x[..., :half], x[..., half:]) * turn[:, None, :]
    return torch.cat([both.real, both.imag], dim=-1)


@dataclass(frozen=True)
class Paged:
    """A batch in pages. q [sum of q_lens, heads, d]; k, v [pages, page_size, kv_heads, d], by token."""

    q_lens: tuple[int, ...]
    kv_lens: tuple[int, ...]
    page_size: int
    heads: tuple[int, int]
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    pages: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Query heads, KV heads, head_dim, page size, as plans take them."""
        return (*self.heads, self.q.shape[2], self.page_size)

    @property
    def qo_indptr(self) -> torch.Tensor:
        return sums(self.q_lens)

    @property
    def indptr(self) -> torch.Tensor:
        return sums([len(pages) for pages in self.pages])

    @property
    def indices(self) -> torch.Tensor:
        return i32([page for pages in self.pages for page in pages])

    @property
    def last(self) -> torch.Tensor:
        return i32([(n - 1) % self.page_size + 1 if n else 0 for n in self.kv_lens])

    @property
    def table(self) -> torch.Tensor:
        """FlashAttention's page table, rows filled up with page 0."""
        width = max(1, *(len(pages) for pages in self.pages))
        return i32([p for row in self.pages for p in (*row, *[0] * (width - len(row)))]).view(-1, width)

    def cache(self, form: str, layout: str) -> object:
        """The cache as a "tuple" or "stacked", in NHD or HND."""
        k, v = (self.k, self.v) if layout == "NHD" else (self.k.transpose(1, 2), self.v.transpose(1, 2))
        if form == "tuple":
            return k.contiguous(), v.contiguous()
        return torch.stack([k, v], dim=1).contiguous()

    def tokens(self, cache: torch.Tensor, request: int) -> torch.Tensor:
        """K or V of one request in order, [kv_len, kv_heads, d]."""
        pages = [cache[page] for page in self.pages[request]]
        return torch.cat([*pages, cache[0][:0]])[: self.kv_lens[request]]

    def want(
        self, rule: Rule, masks: Sequence[torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attention of all requests: out [rows, heads, d] and the natural LSE [rows, heads]."""
        parts = [
            attention(
                q,
                self.tokens(self.k, i),
                self.tokens(self.v, i),
                rule,
                None if masks is None else masks[i],
            )
            for i, q in enumerate(self.q.split(self.q_lens))
        ]
        return torch.cat([out for out, _ in parts]), torch.cat([lse for _, lse in parts])


@functools.cache
def arena() -> torch.Tensor:
    """One float workspace for all wrappers: each runs before the next one plans."""
    return workspace()


def sums(lengths: Sequence[int]) -> torch.Tensor:
    """int32 running sum with its leading 0, on the kernels' device."""
    found = [0]
    for length in lengths:
        found.append(found[-1] + length)
    return i32(found)


def paged(
    q_lens: Sequence[int],
    kv_lens: Sequence[int],
    *,
    page_size: int = 16,
    heads: tuple[int, int] = (8, 2),
    head_dim: int = 64,
    dtype: torch.dtype = torch.float16,
    seed: int = 0,
) -> Paged:
    """Normal random numbers; pages in shuffled order, three of the pool unused."""
    generator = rng(seed)
    counts = [-(-n // page_size) for n in kv_lens]
    total = sum(counts) + 3
    order = torch.randperm(total, generator=generator)[: sum(counts)].tolist()
    taken = iter(order)
    pages = tuple(tuple(next(taken) for _ in range(count)) for count in counts)
    shape = (total, page_size, heads[1], head_dim)
    return Paged(
        tuple(q_lens),
        tuple(kv_lens),
        page_size,
        heads,
        normal(generator, sum(q_lens), heads[0], head_dim, dtype=dtype),
        normal(generator, *shape, dtype=dtype),
        normal(generator, *shape, dtype=dtype),
        pages,
    )


GROUPS = ((4, 4), (4, 2), (6, 2), (8, 2), (8, 1), (16, 1))
"""Query and KV heads whose ratio every kernel has."""


def random_lengths(
    pick: random.Random, decode: bool, longest: int = 70, *, empty: bool = True
) -> tuple[list[int], list[int]]:
    """q and KV lengths of 1 to 5 requests: short, empty (if allowed) and some of several tiles."""
    count = pick.randint(1, 5)
    least = 0 if empty else 1
    kv = [pick.choice([least, 1, 2, pick.randint(1, 20), pick.randint(1, longest)]) for _ in range(count)]
    q = [1] * count if decode else [pick.choice([0, 1, 2, pick.randint(1, longest)]) for _ in range(count)]
    if not decode and sum(q) == 0:
        q[0] = 1
    return q, kv


def random_masks(pick: random.Random, q_lens: Sequence[int], kv_lens: Sequence[int]) -> list[torch.Tensor]:
    """A mask for each request, bool [q_len, kv_len]: sparse ones, dense ones, rows that see nothing."""
    generator = rng(pick.randrange(1 << 30))
    masks = []
    for n, kv in zip(q_lens, kv_lens, strict=True):
        mask = torch.rand(n, kv, generator=generator) < pick.choice([0.2, 0.5, 0.9])
        if n and pick.random() < 0.3:
            mask[pick.randrange(n)] = False
        masks.append(there(mask))
    return masks
