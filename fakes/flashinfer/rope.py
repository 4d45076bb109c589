"""Rotary embedding of q and k, in place or into new tensors.

Positions come as offsets of ragged requests, as one id a token, or with a precomputed cos/sin cache.
q [tokens, q_heads, head_dim], k [tokens, kv_heads, head_dim], last dimension dense. rotary_dim: how many
dimensions turn (None: all). interleave: pairs are neighbours and not halves. Frequencies as in
`fake_kernels.rope`; the *_llama31_* functions blend them as Llama 3.1 does (arguments as in rope.py of
flashinfer 0.7.2.post1).
"""

from __future__ import annotations

import torch
from fake_kernels.checks_rope import (
    check_cache,
    check_head_size,
    check_heads,
    check_positions,
    check_ragged,
    check_rotary_dim,
)
from fake_kernels.checks_rows import require_apart, require_numbers
from fake_kernels.findings import require_context, settle
from fake_kernels.rope import Frequencies, angles, turned


def apply_rope_inplace(
    q: torch.Tensor,
    k: torch.Tensor,
    indptr: torch.Tensor,
    offsets: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 1,
    rope_theta: float = 1e4,
) -> None:
    """Turn q and k in place. Request r has rows indptr[r]:indptr[r + 1], the first of them at position
    offsets[r]. indptr [batch + 1] and offsets [batch] are of one type, int32 or int64."""
    rotated = _ragged(q, k, indptr, offsets, rotary_dim, interleave, Frequencies(rope_scale, rope_theta))
    _write(q, k, rotated)


def apply_rope_pos_ids_inplace(
    q: torch.Tensor,
    k: torch.Tensor,
    pos_ids: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 1,
    rope_theta: float = 1e4,
) -> None:
    """Turn q and k in place; row i is at position pos_ids[i] (int32 or int64 [tokens])."""
    _write(q, k, _by_ids(q, k, pos_ids, rotary_dim, interleave, Frequencies(rope_scale, rope_theta)))


def apply_llama31_rope_inplace(
    q: torch.Tensor,
    k: torch.Tensor,
    indptr: torch.Tensor,
    offsets: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 8,
    rope_theta: float = 5e5,
    low_freq_factor: float = 1,
    high_freq_factor: float = 4,
    old_context_len: int = 8192,
) -> None:
    """`apply_rope_inplace` with Llama 3.1's frequencies."""
    blend = Frequencies(rope_scale, rope_theta, low_freq_factor, high_freq_factor, old_context_len)
    _write(q, k, _ragged(q, k, indptr, offsets, rotary_dim, interleave, blend))


def apply_llama31_rope_pos_ids_inplace(
    q: torch.Tensor,
    k: torch.Tensor,
    pos_ids: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 8,
    rope_theta: float = 5e5,
    low_freq_factor: float = 1,
    high_freq_factor: float = 4,
    old_context_len: int = 8192,
) -> None:
    """`apply_rope_pos_ids_inplace` with Llama 3.1's frequencies."""
    blend = Frequencies(rope_scale, rope_theta, low_freq_factor, high_freq_factor, old_context_len)
    _write(q, k, _by_ids(q, k, pos_ids, rotary_dim, interleave, blend))


def apply_rope(
    q: torch.Tensor,
    k: torch.Tensor,
    indptr: torch.Tensor,
    offsets: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 1,
    rope_theta: float = 1e4,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`apply_rope_inplace` into new tensors, returned as (q, k)."""
    return _ragged(q, k, indptr, offsets, rotary_dim, interleave, Frequencies(rope_scale, rope_theta))


def apply_rope_pos_ids(
    q: torch.Tensor,
    k: torch.Tensor,
    pos_ids: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 1,
    rope_theta: float = 1e4,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`apply_rope_pos_ids_inplace` into new tensors, returned as (q, k)."""
    return _by_ids(q, k, pos_ids, rotary_dim, interleave, Frequencies(rope_scale, rope_theta))


def apply_llama31_rope(
    q: torch.Tensor,
    k: torch.Tensor,
    indptr: torch.Tensor,
    offsets: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 8,
    rope_theta: float = 5e5,
    low_freq_factor: float = 1,
    high_freq_factor: float = 4,
    old_context_len: int = 8192,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`apply_llama31_rope_inplace` into new tensors, returned as (q, k)."""
    blend = Frequencies(rope_scale, rope_theta, low_freq_factor, high_freq_factor, old_context_len)
    return _ragged(q, k, indptr, offsets, rotary_dim, interleave, blend)


def apply_llama31_rope_pos_ids(
    q: torch.Tensor,
    k: torch.Tensor,
    pos_ids: torch.Tensor,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 8,
    rope_theta: float = 5e5,
    low_freq_factor: float = 1,
    high_freq_factor: float = 4,
    old_context_len: int = 8192,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`apply_llama31_rope_pos_ids_inplace` into new tensors, returned as (q, k)."""
    blend = Frequencies(rope_scale, rope_theta, low_freq_factor, high_freq_factor, old_context_len)
    return _by_ids(q, k, pos_ids, rotary_dim, interleave, blend)


def apply_rope_with_cos_sin_cache(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query [tokens, q_heads * head_size] and key [tokens, kv_heads * head_size] turned, in new tensors.

    positions: int32 or int64 [tokens], rows of the cache. cos_sin_cache: float32 [positions, rotary_dim],
    the cos of rotary_dim / 2 angles and then their sin. is_neox: pairs are halves, not neighbours.
    ValueError if the cache isn't float32.
    """
    q, k = _by_cache(positions, query, key, head_size, cos_sin_cache, is_neox)
    return q.view(query.shape), k.view(key.shape)


def apply_rope_with_cos_sin_cache_inplace(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool = True,
) -> None:
    """`apply_rope_with_cos_sin_cache` in place; query and key may be slices of one projection."""
    q, k = _by_cache(positions, query, key, head_size, cos_sin_cache, is_neox)
    _write(query, key, (q.view(query.shape), k.view(key.shape)))


def _ragged(
    q: torch.Tensor,
    k: torch.Tensor,
    indptr: torch.Tensor,
    offsets: torch.Tensor,
    rotary_dim: int | None,
    interleave: bool,
    frequencies: Frequencies,
) -> tuple[torch.Tensor, torch.Tensor]:
    require_context()
    require_numbers(rotary_dim=rotary_dim, interleave=interleave, **frequencies.arguments)
    settle(check_heads(q, k), "rows", during="run")
    settle(check_ragged(indptr, offsets, q.shape[0]), "rows", during="run")
    counts = (indptr[1:] - indptr[:-1]).long()
    request = torch.arange(len(offsets)).repeat_interleave(counts)
    positions = torch.arange(q.shape[0]) - indptr.long()[request] + offsets.long()[request]
    return _by_ids(q, k, positions, rotary_dim, interleave, frequencies)


def _by_ids(
    q: torch.Tensor,
    k: torch.Tensor,
    pos_ids: torch.Tensor,
    rotary_dim: int | None,
    interleave: bool,
    frequencies: Frequencies,
) -> tuple[torch.Tensor, torch.Tensor]:
    require_context()
    require_numbers(rotary_dim=rotary_dim, interleave=interleave, **frequencies.arguments)
    settle(check_heads(q, k), "rows", during="run")
    turning = q.shape[-1] if rotary_dim is None else rotary_dim
    settle(check_rotary_dim(turning, q.shape[-1], interleave), "rows", during="run")
    settle(check_positions("pos_ids", pos_ids, q.shape[0]), "rows", during="run")
    cos, sin = angles(pos_ids, frequencies, turning)
    return turned(q, cos, sin, interleave), turned(k, cos, sin, interleave)


def _by_cache(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    require_context()
    require_numbers(head_size=head_size, is_neox=is_neox)
    settle(check_cache(cos_sin_cache, head_size), "rows", during="run")
    for name, given in (("query", query), ("key", key)):
        settle(check_head_size(name, given, head_size), "rows", during="run")
    q = query.view(query.shape[0], -1, head_size)
    k = key.view(key.shape[0], -1, head_size)
    settle(check_heads(q, k, ("query", "key")), "rows", during="run")
    rotary_dim = cos_sin_cache.shape[1]
    settle(check_rotary_dim(rotary_dim, head_size, not is_neox), "rows", during="run")
    found = check_positions("positions", positions, q.shape[0], in_cache=cos_sin_cache.shape[0])
    settle(found, "rows", during="run")
    cos, sin = cos_sin_cache[positions.long()].split(rotary_dim // 2, dim=1)
    return turned(q, cos, sin, not is_neox), turned(k, cos, sin, not is_neox)


def _write(q: torch.Tensor, k: torch.Tensor, rotated: tuple[torch.Tensor, torch.Tensor]) -> None:
    require_apart(q=q, k=k)
    q.copy_(rotated[0])
    k.copy_(rotated[1])


__all__ = [
    "apply_llama31_rope",
    "apply_llama31_rope_inplace",
    "apply_llama31_rope_pos_ids",
    "apply_llama31_rope_pos_ids_inplace",
    "apply_rope",
    "apply_rope_inplace",
    "apply_rope_pos_ids",
    "apply_rope_pos_ids_inplace",
    "apply_rope_with_cos_sin_cache",
    "apply_rope_with_cos_sin_cache_inplace",
]
