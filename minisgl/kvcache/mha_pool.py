"""The KV pool of multi-head attention: one tensor for keys and values of all layers.

Allocated once, when the engine starts: from then on memory for KV is a matter of bookkeeping, and no request
can make the device run out in the middle of a forward.
"""

from __future__ import annotations

import torch

from minisgl.distributed.info import get_tp_info
from minisgl.kernel import store_kv
from minisgl.kvcache.base import BaseKVCachePool
from minisgl.models.config import ModelConfig
from minisgl.utils.misc import local_kv_heads


class MHAKVCache(BaseKVCachePool):
    """Keys and values in one tensor [2, layers, num_pages, page_size, local KV heads, head_dim].

    Invariants
    - token position p is place p % page_size of page p // page_size, in every layer, for keys and for values;
    - a layer's keys and values have equal strides (kernels that read both with one index rely on it).
    """

    def __init__(
        self, config: ModelConfig, num_pages: int, page_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        heads = local_kv_heads(config.num_kv_heads, get_tp_info().size)
        # Zeroed, so that a place nobody wrote reads the same on every run (padded rows do read one).
        self._buffer = torch.zeros(
            (2, config.num_layers, num_pages, page_size, heads, config.head_dim), dtype=dtype, device=device
        )
        self._k, self._v = self._buffer[0], self._buffer[1]

    @staticmethod
    def bytes_per_token(config: ModelConfig, dtype: torch.dtype) -> int:
        """Bytes of this rank's pool that one token takes, keys and values of all layers together."""
        heads = local_kv_heads(config.num_kv_heads, get_tp_info().size)
        return 2 * config.num_layers * heads * config.head_dim * dtype.itemsize

    def k_cache(self, layer_id: int) -> torch.Tensor:
        return self._k[layer_id]

    def v_cache(self, layer_id: int) -> torch.Tensor:
        return self._v[layer_id]

    def store_kv(self, k: torch.Tensor, v: torch.Tensor, out_loc: torch.Tensor, layer_id: int) -> None:
        store_kv(self._k[layer_id], self._v[layer_id], out_loc, k, v)

    @property
    def device(self) -> torch.device:
        return self._buffer.device

    @property
    def dtype(self) -> torch.dtype:
        return self._buffer.dtype

    @property
    def num_pages(self) -> int:
        return self._buffer.shape[2]

    @property
    def page_size(self) -> int:
        return self._buffer.shape[3]
