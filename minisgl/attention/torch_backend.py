"""The reference backend: attention in plain torch, one request after another.

It is slow, and it is the one that can be read: gather a request's keys and values by its row of the page
table, write the causal mask, call scaled_dot_product_attention. Every other backend has to give the same
answer.

Decoding has a second form, for larger batches and for CUDA graphs: all requests in one call, as a rectangle
of the longest whose empty part is masked. It differs from the first form by rounding only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F

from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata
from minisgl.attention.utils import make_indptr
from minisgl.core import Batch, get_global_ctx
from minisgl.kvcache.base import BaseKVCachePool
from minisgl.models.config import ModelConfig

# From so many requests on, one call for all of a decode batch is quicker than one for each.
RECTANGLE_FROM = 4


@dataclass
class TorchMetadata(BaseAttnMetadata):
    """cu_seqlens_q: int32 [bs + 1] on the device: which query rows belong to which request.

    For each request: its first and end query row; `kv_indices` int32 [kv_len], the token positions of its KV
    in the pool; `masks` bool [n, kv_len], True where query i may see key j, or None for one query, which sees
    all.
    """

    cu_seqlens_q: torch.Tensor
    query_ranges: list[tuple[int, int]]
    kv_indices: list[torch.Tensor]
    masks: list[torch.Tensor | None]

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return self.cu_seqlens_q[1 : bs + 1] - 1


@dataclass
class RectangleMetadata(BaseAttnMetadata):
    """A decode batch, one query a request.

    kv_indices: int32 [bs, longest], token positions of each request's KV, then positions that do not count.
    bias: [bs, 1, 1, longest] in the pool's dtype: 0 where a token is, -inf behind the last.
    """

    kv_indices: torch.Tensor
    bias: torch.Tensor

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return torch.arange(bs, device=self.kv_indices.device)


class TorchBackend(BaseAttnBackend):
    """Works on every device, with every page size and dtype that scaled_dot_product_attention takes."""

    def __init__(self, config: ModelConfig, kvcache: BaseKVCachePool) -> None:
        self.kvcache = kvcache
        self.device = kvcache.device
        self.scale = config.head_dim**-0.5
        self._captured: RectangleMetadata | None = None

    def prepare_metadata(self, batch: Batch) -> None:
        reqs = batch.padded_reqs
        if batch.is_decode and len(reqs) >= RECTANGLE_FROM:
            batch.attn_metadata = self._rectangle(batch)
            return
        page_table = get_global_ctx().page_table
        starts = make_indptr([req.extend_len for req in reqs], self.device)
        batch.attn_metadata = TorchMetadata(
            cu_seqlens_q=starts.to(self.device, non_blocking=True),
            query_ranges=list(pairwise(starts.tolist())),
            # Copied: the row may be written again while the device still reads.
            kv_indices=[page_table[req.table_idx, : req.device_len].clone() for req in reqs],
            masks=[self._causal_mask(req.extend_len, req.device_len) for req in reqs],
        )

    def _causal_mask(self, n: int, kv_len: int) -> torch.Tensor | None:
        """bool [n, kv_len]: query i stands at kv_len - n + i and sees itself and what came before."""
        if n == 1:
            return None
        query_at = torch.arange(kv_len - n, kv_len, device=self.device).unsqueeze(1)
        return torch.arange(kv_len, device=self.device).unsqueeze(0) <= query_at

    def _rectangle(self, batch: Batch) -> RectangleMetadata:
        reqs = batch.padded_reqs
        lengths = [req.device_len for req in reqs]
        host = torch.tensor([[req.table_idx for req in reqs], lengths], dtype=torch.int32)
        rows, kv_lens = host.to(self.device, non_blocking=True)
        longest = max(lengths)
        behind = torch.arange(longest, device=self.device) >= kv_lens.unsqueeze(1)
        # What stands in a row behind its last token is anything; position 0 is in every pool.
        kv_indices = get_global_ctx().page_table[:, :longest].index_select(0, rows).masked_fill_(behind, 0)
        bias = torch.zeros(behind.shape, dtype=self.kvcache.dtype, device=self.device)
        bias.masked_fill_(behind, float("-inf"))
        return RectangleMetadata(kv_indices, bias.view(len(reqs), 1, 1, longest))

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        metadata = batch.attn_metadata
        self.kvcache.store_kv(k, v, batch.out_loc, layer_id)
        k_tokens = self.kvcache.k_cache(layer_id).flatten(0, 1)
        v_tokens = self.kvcache.v_cache(layer_id).flatten(0, 1)
        if isinstance(metadata, RectangleMetadata):
            return self._attend_rectangle(q, k_tokens, v_tokens, metadata)
        assert isinstance(metadata, TorchMetadata)
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

    def _attend_rectangle(
        self, q: torch.Tensor, k_tokens: torch.Tensor, v_tokens: torch.Tensor, metadata: RectangleMetadata
    ) -> torch.Tensor:
        shape = (*metadata.kv_indices.shape, *k_tokens.shape[1:])
        flat = metadata.kv_indices.flatten()
        attended = F.scaled_dot_product_attention(
            q.unsqueeze(2),
            k_tokens.index_select(0, flat).view(shape).transpose(1, 2),
            v_tokens.index_select(0, flat).view(shape).transpose(1, 2),
            attn_mask=metadata.bias,
            scale=self.scale,
            enable_gqa=True,
        )
        return attended.squeeze(2)

    def init_capture_graph(self, max_seq_len: int, sizes: Sequence[int]) -> None:
        """A rectangle as long as a request may get: a graph's shapes never change."""
        largest = max(sizes)
        self._captured = RectangleMetadata(
            torch.zeros(largest, max_seq_len, dtype=torch.int32, device=self.device),
            torch.zeros(largest, 1, 1, max_seq_len, dtype=self.kvcache.dtype, device=self.device),
        )

    def prepare_for_capture(self, batch: Batch) -> None:
        whole, size = self._captured, batch.padded_size
        assert whole is not None
        batch.attn_metadata = self._rectangle(batch)
        self.prepare_for_replay(batch)
        batch.attn_metadata = RectangleMetadata(whole.kv_indices[:size], whole.bias[:size])

    def prepare_for_replay(self, batch: Batch) -> None:
        whole, size = self._captured, batch.padded_size
        assert whole is not None
        metadata = batch.attn_metadata
        if not isinstance(metadata, RectangleMetadata):
            metadata = self._rectangle(batch)
        longest = metadata.kv_indices.shape[1]
        whole.kv_indices[:size, :longest].copy_(metadata.kv_indices)
        whole.bias[:size, :, :, :longest].copy_(metadata.bias)
        whole.bias[:size, :, :, longest:].fill_(float("-inf"))


def _heads_first(x: torch.Tensor) -> torch.Tensor:
    """[tokens, heads, D] -> [1, heads, tokens, D], the layout of scaled_dot_product_attention."""
    return x.transpose(0, 1).unsqueeze(0)
