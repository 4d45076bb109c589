"""The reference backend: attention in plain torch, one request after another.

It is slow, and it is the one that can be read: gather a request's keys and values by its row of the page
table, write the causal mask, call scaled_dot_product_attention. Every other backend has to give the same
answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F

from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata
from minisgl.attention.utils import make_indptr
from minisgl.core import Batch, get_global_ctx
from minisgl.kvcache.base import BaseKVCachePool
from minisgl.models.config import ModelConfig


@dataclass
class TorchMetadata(BaseAttnMetadata):
    """cu_seqlens_q: int32 [bs + 1] on the device: which query rows belong to which request.

    For each request: its first and end query row; `kv_indices` int32 [kv_len], the token positions of its KV
    in the pool; `masks` bool [n, kv_len], True where query i may see key j.
    """

    cu_seqlens_q: torch.Tensor
    query_ranges: list[tuple[int, int]]
    kv_indices: list[torch.Tensor]
    masks: list[torch.Tensor]

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return self.cu_seqlens_q[1 : bs + 1] - 1


class TorchBackend(BaseAttnBackend):
    """Works on every device, with every page size and dtype that scaled_dot_product_attention takes."""

    def __init__(self, config: ModelConfig, kvcache: BaseKVCachePool) -> None:
        self.kvcache = kvcache
        self.device = kvcache.device
        self.scale = config.head_dim**-0.5

    def prepare_metadata(self, batch: Batch) -> None:
        page_table = get_global_ctx().page_table
        starts = make_indptr([req.extend_len for req in batch.padded_reqs], self.device)
        edges = starts.tolist()
        batch.attn_metadata = TorchMetadata(
            cu_seqlens_q=starts.to(self.device, non_blocking=True),
            query_ranges=list(pairwise(edges)),
            kv_indices=[page_table[req.table_idx, : req.device_len] for req in batch.padded_reqs],
            masks=[self._causal_mask(req.extend_len, req.device_len) for req in batch.padded_reqs],
        )

    def _causal_mask(self, n: int, kv_len: int) -> torch.Tensor:
        """bool [n, kv_len]: query i stands at kv_len - n + i and sees itself and what came before."""
        query_at = torch.arange(kv_len - n, kv_len, device=self.device).unsqueeze(1)
        return torch.arange(kv_len, device=self.device).unsqueeze(0) <= query_at

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        metadata = batch.attn_metadata
        assert isinstance(metadata, TorchMetadata)
        self.kvcache.store_kv(k, v, batch.out_loc, layer_id)
        k_tokens = self.kvcache.k_cache(layer_id).flatten(0, 1)
        v_tokens = self.kvcache.v_cache(layer_id).flatten(0, 1)
        out = torch.empty_like(q)
        for (first, end), indices, mask in zip(
            metadata.query_ranges, metadata.kv_indices, metadata.masks, strict=True
        ):
            attended = F.scaled_dot_product_attention(
                _heads_first(q[first:end]),
                _heads_first(k_tokens.index_select(0, indices)),
                _heads_first(v_tokens.index_select(0, indices)),
                attn_mask=mask,
                scale=self.scale,
                enable_gqa=True,
            )
            out[first:end] = attended.squeeze(0).transpose(0, 1)
        return out


def _heads_first(x: torch.Tensor) -> torch.Tensor:
    """[tokens, heads, D] -> [1, heads, tokens, D], the layout of scaled_dot_product_attention."""
    return x.transpose(0, 1).unsqueeze(0)
