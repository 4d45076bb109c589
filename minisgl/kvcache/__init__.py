"""The KV pool and the prefix cache, chosen by name."""

from __future__ import annotations

import torch

from minisgl.kvcache.base import BaseCacheHandle, BaseKVCachePool, BasePrefixCache
from minisgl.models.config import ModelConfig
from minisgl.utils.registry import Entry, Registry

PREFIX_CACHES = Registry(
    "prefix cache",
    {
        "naive": Entry("minisgl.kvcache.naive_cache:NaivePrefixCache", 4),
        "radix": Entry("minisgl.kvcache.radix_cache:RadixPrefixCache", 9),
    },
)


def create_kvcache_pool(
    config: ModelConfig, num_pages: int, page_size: int, dtype: torch.dtype, device: torch.device
) -> BaseKVCachePool:
    """A pool of num_pages pages of page_size tokens; see MHAKVCache for its shape."""
    from minisgl.kvcache.mha_pool import MHAKVCache

    return MHAKVCache(config, num_pages, page_size, dtype, device)


def create_prefix_cache(name: str, page_size: int, device: torch.device) -> BasePrefixCache:
    """An empty prefix cache for pages of page_size tokens; positions in it are kept on `device`.

    ValueError that lists the known names for one that is not among them.
    """
    cache: BasePrefixCache = PREFIX_CACHES.load(name)(page_size, device)
    return cache


__all__ = [
    "PREFIX_CACHES",
    "BaseCacheHandle",
    "BaseKVCachePool",
    "BasePrefixCache",
    "create_kvcache_pool",
    "create_prefix_cache",
]
