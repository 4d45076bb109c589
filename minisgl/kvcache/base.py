"""What the rest of the engine may ask of a KV pool and of a prefix cache.

Two different things. The pool is memory: where keys and values of every token lie. The prefix cache is
knowledge: which stretches of that memory hold the KV of which token sequence, so that a new request with the
same beginning need not compute it again. Neither knows about requests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch


class BaseKVCachePool(ABC):
    """Keys and values of every layer, cut into pages of `page_size` tokens."""

    @abstractmethod
    def k_cache(self, layer_id: int) -> torch.Tensor:
        """Keys of a layer: [num_pages, page_size, local KV heads, head_dim], a view of the pool."""

    @abstractmethod
    def v_cache(self, layer_id: int) -> torch.Tensor:
        """Values of a layer, shaped and strided as its keys."""

    @abstractmethod
    def store_kv(self, k: torch.Tensor, v: torch.Tensor, out_loc: torch.Tensor, layer_id: int) -> None:
        """Write k and v, each [tokens, local KV heads, head_dim], to the positions out_loc int32 [tokens]."""

    @property
    @abstractmethod
    def device(self) -> torch.device: ...

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype: ...

    @property
    @abstractmethod
    def page_size(self) -> int: ...

    @property
    @abstractmethod
    def num_pages(self) -> int: ...


@dataclass(frozen=True)
class BaseCacheHandle(ABC):
    """A stretch of cached tokens, from the first token on. `cached_len` counts tokens, in whole pages."""

    cached_len: int

    @abstractmethod
    def matched_indices(self) -> torch.Tensor:
        """Token positions in the pool of the cached tokens: int32 [cached_len]."""


class SizeInfo(NamedTuple):
    """Tokens that the cache holds: free to be evicted, and locked by requests."""

    evictable: int
    protected: int


class InsertResult(NamedTuple):
    """`already_cached` tokens of the inserted sequence were there before; `handle` now covers all of it."""

    already_cached: int
    handle: BaseCacheHandle


class BasePrefixCache(ABC):
    """Which token sequences have their KV in the pool.

    Invariant: matching changes nothing. A handle is safe to read only while it is locked.
    """

    @abstractmethod
    def match_prefix(self, input_ids: torch.Tensor) -> BaseCacheHandle:
        """The longest cached beginning of input_ids, int32 [tokens] on the CPU."""

    @abstractmethod
    def lock(self, handle: BaseCacheHandle) -> None:
        """Keep the handle's tokens from being evicted. Locks count."""

    @abstractmethod
    def unlock(self, handle: BaseCacheHandle) -> None:
        """Undo one lock; RuntimeError if there is none."""

    @abstractmethod
    def insert_prefix(self, input_ids: torch.Tensor, indices: torch.Tensor) -> InsertResult:
        """Remember that the KV of input_ids int32 [n] lies at indices int32 [n]; only whole pages are kept.

        Where the sequence was known already, the older places stay the ones remembered.
        """

    @abstractmethod
    def evict(self, size: int) -> torch.Tensor:
        """Forget at least `size` tokens that nobody locks; returns their positions, int32.

        RuntimeError if fewer than `size` are evictable.
        """

    @abstractmethod
    def cached_indices(self) -> torch.Tensor:
        """Positions in the pool of every token that the cache holds, int32; for checks of who owns what."""

    @abstractmethod
    def size_info(self) -> SizeInfo: ...

    @abstractmethod
    def check_integrity(self) -> None:
        """RuntimeError, saying what is wrong, if the cache's own books do not add up."""
