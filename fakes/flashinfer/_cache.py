"""The forms in which flashinfer takes a paged KV cache, brought to one: two 4-D tensors."""

from __future__ import annotations

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.findings import Finding, settle
from fake_kernels.outcomes import Path
from fake_kernels.reference import Layout


def unpack_cache(cache: object, layout: Layout, path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V as 4-D tensors in `layout`, views of the caller's.

    cache: a tuple (k, v) of 4-D tensors (3-D: page size 1), or one 5-D tensor with a 2 after the pages
    (4-D: page size 1). KeyError for another type, ValueError for another number of dimensions.
    """
    if isinstance(cache, tuple) and len(cache) == 2 and all(isinstance(part, torch.Tensor) for part in cache):
        k, v = cache
        return _with_pages(k, 3, layout, path), _with_pages(v, 3, layout, path)
    if isinstance(cache, torch.Tensor):
        both = _with_pages(cache, 4, layout, path)
        if both.shape[1] != 2:
            params = {"shape": list(cache.shape), "message": "too many values to unpack (expected 2)"}
            settle([Finding(m.CACHE_DIMENSIONS, "paged_kv_cache", params)], path, during="run")
        k, v = both.unbind(dim=1)
        return k, v
    params = {"type": type(cache).__name__, "cls": str(type(cache))}
    settle([Finding(m.CACHE_TYPE, "paged_kv_cache", params)], path, during="run")
    raise AssertionError("a finding about the cache's type always raises")


def page_size_of(k_cache: torch.Tensor, layout: Layout) -> int:
    """Tokens a page of a 4-D cache holds."""
    return k_cache.shape[1] if layout == "NHD" else k_cache.shape[2]


def kv_heads_of(k_cache: torch.Tensor, layout: Layout) -> int:
    """KV heads of a 4-D cache."""
    return k_cache.shape[2] if layout == "NHD" else k_cache.shape[1]


def _with_pages(part: torch.Tensor, flat: int, layout: Layout, path: Path) -> torch.Tensor:
    if part.ndim not in (flat, flat + 1):
        message = f"x must be {flat}D or {flat + 1}D"
        settle(
            [Finding(m.CACHE_DIMENSIONS, "paged_kv_cache", {"shape": list(part.shape), "message": message})],
            path,
            during="run",
        )
    if part.ndim == flat:
        return part.unsqueeze(-3 if layout == "NHD" else -2)
    return part
