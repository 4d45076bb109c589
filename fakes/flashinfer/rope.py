"""Rotary embedding of q and k, in place or into new tensors.

Positions come as offsets of ragged requests, as one id a token, or with a precomputed cos/sin cache.
q [tokens, q_heads, head_dim], k [tokens, kv_heads, head_dim], last dimension dense. rotary_dim: how many
dimensions turn (None: all). interleave: pairs are neighbours and not halves. Frequencies as in
`fake_kernels.rope`; the *_llama31_* functions blend them as Llama 3.1 does (arguments as in rope.py of
flashinfer 0.7.2.post1).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from fake_kernels.checks_rope import (
    check_cache,
    check_head_size,
    check_heads,
    check_positions,
    check_ragged,
    check_rotary_dim,
)
from fake_kernels.checks_rows import acted, require_apart, require_numbers, require_room
from fake_kernels.findings import require_context
from fake_kernels.memory import picked
from fake_kernels.outcomes import UNMEASURED
from fake_kernels.rope import Frequencies, angles, turned, turned_askew

Rotated = tuple[torch.Tensor, torch.Tensor]
"""q and k after turning."""


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
    plain = Frequencies(rope_scale, rope_theta)
    _write(q, k, _ragged(q, k, indptr, offsets, rotary_dim, interleave, plain, (q, k)))


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
    _write(q, k, _ragged(q, k, indptr, offsets, rotary_dim, interleave, blend, (q, k)))


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
    unwritten: Rotated | None = None,
) -> Rotated:
    """unwritten: what rows hold that belong to no request; zeros for new tensors, as they were found to hold."""
    require_context()
    require_numbers(rotary_dim=rotary_dim, interleave=interleave, **frequencies.arguments)
    acted(check_heads(q, k))
    acted(check_ragged(indptr, offsets, q.shape[0]))
    counts = (indptr[1:] - indptr[:-1]).long()
    request = torch.arange(len(offsets)).repeat_interleave(counts)
    rows = len(request)
    positions = torch.arange(rows) - indptr.long()[request] + offsets.long()[request]
    told = (q[:rows], k[:rows], positions)
    rotated = _by_ids(*told, rotary_dim, interleave, frequencies)
    if rows == q.shape[0]:
        return rotated
    kept = (torch.zeros_like(q), torch.zeros_like(k)) if unwritten is None else unwritten
    return torch.cat([rotated[0], kept[0][rows:]]), torch.cat([rotated[1], kept[1][rows:]])


def _by_ids(
    q: torch.Tensor,
    k: torch.Tensor,
    pos_ids: torch.Tensor,
    rotary_dim: int | None,
    interleave: bool,
    frequencies: Frequencies,
) -> Rotated:
    require_context()
    require_numbers(rotary_dim=rotary_dim, interleave=interleave, **frequencies.arguments)
    acted(check_heads(q, k))
    turning = q.shape[-1] if rotary_dim is None else rotary_dim
    askew = acted(check_rotary_dim(turning, q.shape[-1], interleave))
    acted(check_positions("pos_ids", pos_ids, q.shape[0]))
    pos_ids = _for_all(pos_ids, q.shape[0])
    if askew is not None:
        return _both(q, k, lambda x: turned_askew(x, pos_ids, frequencies, turning, interleave))
    cos, sin = angles(pos_ids, frequencies, turning)
    return _both(q, k, lambda x: turned(x, cos, sin, interleave))


def _by_cache(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> Rotated:
    require_context()
    require_numbers(head_size=head_size, is_neox=is_neox)
    acted(check_cache(cos_sin_cache, head_size))
    for name, given in (("query", query), ("key", key)):
        acted(check_head_size(name, given, head_size))
    q = query.view(query.shape[0], -1, head_size)
    k = key.view(key.shape[0], -1, head_size)
    acted(check_heads(q, k, ("query", "key")))
    rows, rotary_dim = cos_sin_cache.shape
    acted(check_rotary_dim(rotary_dim, head_size, not is_neox, of_cache=True))
    acted(check_positions("positions", positions, q.shape[0], rows, 4 * rotary_dim))
    cos, sin = picked(cos_sin_cache, positions.long()).split(rotary_dim // 2, dim=1)
    return _both(q, k, lambda x: turned(x, cos, sin, not is_neox))


def _both(q: torch.Tensor, k: torch.Tensor, turn: Callable[[torch.Tensor], torch.Tensor]) -> Rotated:
    """q and k turned; a k of another type is taken for the bits of q's."""
    if k.dtype == q.dtype:
        return turn(q), turn(k)
    return turn(q), turn(k.view(q.dtype)).view(k.dtype)


def _for_all(positions: torch.Tensor, rows: int) -> torch.Tensor:
    """A position for each row: behind the given ones lie zeros."""
    missing = max(0, rows - len(positions))
    return torch.cat([positions, positions.new_zeros(missing)]) if missing else positions


def _write(q: torch.Tensor, k: torch.Tensor, rotated: Rotated) -> None:
    require_room(q=q, k=k)
    require_apart(UNMEASURED, q=q, k=k)
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
