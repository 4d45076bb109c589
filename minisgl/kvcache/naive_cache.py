"""The prefix cache that remembers nothing: every request computes its whole prompt.

It is what the radix cache is measured against, and the smallest answer to every question a prefix cache is
asked.
"""

from __future__ import annotations

import torch

from minisgl.kvcache.base import BaseCacheHandle, BasePrefixCache, InsertResult, SizeInfo


class NaiveCacheHandle(BaseCacheHandle):
    """A handle on nothing."""

    def matched_indices(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int32)


class NaivePrefixCache(BasePrefixCache):
    """Invariant: it holds no token, so whoever inserts keeps the pages and must free them."""

    def __init__(self, page_size: int = 1, device: torch.device | None = None) -> None:
        """Takes what every prefix cache is made with; pages of any size are forgotten alike."""
        self._device = device

    def match_prefix(self, input_ids: torch.Tensor) -> NaiveCacheHandle:
        return NaiveCacheHandle(0)

    def lock(self, handle: BaseCacheHandle) -> None:
        return

    def unlock(self, handle: BaseCacheHandle) -> None:
        return

    def insert_prefix(self, input_ids: torch.Tensor, indices: torch.Tensor) -> InsertResult:
        return InsertResult(0, NaiveCacheHandle(0))

    def evict(self, size: int) -> torch.Tensor:
        if size > 0:
            raise RuntimeError(f"cannot evict {size} tokens: the naive prefix cache holds none")
        return self.cached_indices()

    def cached_indices(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.int32, device=self._device)

    def size_info(self) -> SizeInfo:
        return SizeInfo(0, 0)

    def check_integrity(self) -> None:
        return
