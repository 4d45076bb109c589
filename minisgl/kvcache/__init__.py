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


__all__ = ["PREFIX_CACHES", "BaseCacheHandle", "BaseKVCachePool", "BasePrefixCache", "create_kvcache_pool"]
