"""FlashAttention 3, as sgl_kernel packs it: one call that reads the paged pool, and no plan.

The kernel is told which pages a request owns (a table of page numbers), how long its KV is, and where its
queries lie among all query rows. The pool keeps the engine's page size here, so positions have to be turned
into numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata
from minisgl.attention.utils import make_indptr, require_kernels
from minisgl.core import Batch, get_global_ctx
from minisgl.kvcache.base import BaseKVCachePool
from minisgl.models.config import ModelConfig
from minisgl.utils.device import pin
from minisgl.utils.misc import div_ceil


@dataclass
class FAMetadata(BaseAttnMetadata):
    """A batch of bs (padded) requests in FlashAttention's words. Tensors are int32 on the device.

    cu_seqlens_k, cu_seqlens_q: [bs + 1]: starts of the keys and of the query rows.
    cache_seqlens: [bs]: KV lengths in tokens, the new tokens among them.
    max_seqlen_k, max_seqlen_q: the longest of each.
    page_table: [bs, ceil(max_seqlen_k / page_size)]: page numbers. What stands behind a request's last page
    is never read.
    """

    cu_seqlens_k: torch.Tensor
    cu_seqlens_q: torch.Tensor
    cache_seqlens: torch.Tensor
    max_seqlen_k: int
    max_seqlen_q: int
    page_table: torch.Tensor

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return self.cu_seqlens_q[1 : bs + 1] - 1


class FlashAttentionBackend(BaseAttnBackend):
    """Holds nothing between batches, except the metadata that captured batches read."""

    def __init__(self, config: ModelConfig, kvcache: BaseKVCachePool) -> None:
        try:
            from sgl_kernel.flash_attn import flash_attn_with_kvcache
        except ImportError as error:
            raise require_kernels("sgl_kernel", "fa", error) from error

        self.kvcache = kvcache
        self.device = kvcache.device
        self.page_size = kvcache.page_size
        self.scale = config.head_dim**-0.5
        self._attend = flash_attn_with_kvcache
        self._captured: FAMetadata | None = None

    def prepare_metadata(self, batch: Batch) -> None:
        reqs = batch.padded_reqs
        query_lens = [req.extend_len for req in reqs]
        kv_lens = [req.device_len for req in reqs]
        max_seqlen_q, max_seqlen_k = max(query_lens), max(kv_lens)
        host = {"dtype": torch.int32, "pin_memory": pin(self.device)}

        cu_seqlens_k = make_indptr(kv_lens, self.device).to(self.device, non_blocking=True)
        if max_seqlen_q == 1:  # one query each, as in every decode
            cu_seqlens_q = torch.arange(len(reqs) + 1, dtype=torch.int32, device=self.device)
        elif all(req.cached_len == 0 for req in reqs):  # nothing cached: queries and keys are the same tokens
            cu_seqlens_q = cu_seqlens_k
        else:
            cu_seqlens_q = make_indptr(query_lens, self.device).to(self.device, non_blocking=True)

        # Every page_size-th position is a page's first, and pages start at multiples of page_size.
        rows = torch.tensor([req.table_idx for req in reqs], **host).to(self.device, non_blocking=True)
        first_positions = (
            get_global_ctx().page_table[:, : max_seqlen_k : self.page_size].index_select(0, rows)
        )
        batch.attn_metadata = FAMetadata(
            cu_seqlens_k=cu_seqlens_k,
            cu_seqlens_q=cu_seqlens_q,
            cache_seqlens=torch.tensor(kv_lens, **host).to(self.device, non_blocking=True),
            max_seqlen_k=max_seqlen_k,
            max_seqlen_q=max_seqlen_q,
            page_table=first_positions.floor_divide_(self.page_size),
        )

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        metadata = batch.attn_metadata
        assert isinstance(metadata, FAMetadata)
        self.kvcache.store_kv(k, v, batch.out_loc, layer_id)
        return self._attend(
            q=q,
            k_cache=self.kvcache.k_cache(layer_id),
            v_cache=self.kvcache.v_cache(layer_id),
            page_table=metadata.page_table,
            cache_seqlens=metadata.cache_seqlens,
            cu_seqlens_q=metadata.cu_seqlens_q,
            cu_seqlens_k_new=metadata.cu_seqlens_k,
            max_seqlen_q=metadata.max_seqlen_q,
            softmax_scale=self.scale,
            causal=True,
        )

    def init_capture_graph(self, max_seq_len: int, sizes: Sequence[int]) -> None:
        """Metadata for the largest batch and the longest requests; smaller batches read its first rows."""
        largest = max(sizes)

        def zeros(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=self.device)

        self._captured = FAMetadata(
            cu_seqlens_k=zeros(largest + 1),
            cu_seqlens_q=torch.arange(largest + 1, dtype=torch.int32, device=self.device),
            cache_seqlens=zeros(largest),
            max_seqlen_k=max_seq_len,
            max_seqlen_q=1,
            page_table=zeros(largest, div_ceil(max_seq_len, self.page_size)),
        )

    def prepare_for_capture(self, batch: Batch) -> None:
        whole, size = self._captured, batch.padded_size
        assert whole is not None
        self.prepare_metadata(batch)
        self.prepare_for_replay(batch)
        batch.attn_metadata = FAMetadata(
            cu_seqlens_k=whole.cu_seqlens_k[: size + 1],
            cu_seqlens_q=whole.cu_seqlens_q[: size + 1],
            cache_seqlens=whole.cache_seqlens[:size],
            max_seqlen_k=whole.max_seqlen_k,
            max_seqlen_q=1,
            page_table=whole.page_table[:size],
        )

    def prepare_for_replay(self, batch: Batch) -> None:
        metadata, whole, size = batch.attn_metadata, self._captured, batch.padded_size
        assert isinstance(metadata, FAMetadata)
        assert whole is not None
        whole.cu_seqlens_k[: size + 1].copy_(metadata.cu_seqlens_k)
        whole.cache_seqlens[:size].copy_(metadata.cache_seqlens)
        # Behind a request's last page stays what an earlier batch left: it is never read.
        whole.page_table[:size, : metadata.page_table.shape[1]].copy_(metadata.page_table)
