"""FlashInfer: plan once a batch, run once a layer.

FlashInfer splits attention in two. `plan` reads the lengths of a batch on the host, decides which thread
block works on which piece of which request, and sends that schedule to the GPU; `run` follows it. All layers
of a batch have the same lengths, so one plan serves them all, and it is made as late as possible: at the
first layer.

The pool is handed over as pages of one token, whatever the engine's page size. Then a row of the page table,
which holds token positions, is the list of page numbers that FlashInfer asks for, and every last page is
full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from minisgl.attention.base import BaseAttnBackend, BaseAttnMetadata
from minisgl.attention.utils import make_indptr, require_kernels
from minisgl.core import Batch, get_global_ctx
from minisgl.distributed.info import get_tp_info
from minisgl.kvcache.base import BaseKVCachePool
from minisgl.models.config import ModelConfig
from minisgl.utils.device import new_event, pin
from minisgl.utils.misc import div_even, local_kv_heads

if TYPE_CHECKING:
    from flashinfer import (
        BatchDecodeWithPagedKVCacheWrapper,
        BatchPrefillWithPagedKVCacheWrapper,
        CUDAGraphBatchDecodeWithPagedKVCacheWrapper,
    )

# FlashInfer keeps partial results of split requests here. It refuses a plan that needs more; this is the size
# that its documentation recommends.
FLOAT_WORKSPACE_BYTES = 128 * 2**20

# From this many query heads to a KV head on, decode is a small matrix product, and tensor cores win.
TENSOR_CORE_GROUP = 4


@dataclass
class FIMetadata(BaseAttnMetadata):
    """A batch of bs (padded) requests in FlashInfer's words. Index tensors are int32.

    cu_seqlens_q_cpu, cu_seqlens_k_cpu: [bs + 1] on the CPU: starts of the query rows and of `indices`.
    cu_seqlens_q_gpu: the first of these on the device.
    indices: [sum of kv lengths] on the device: pages of one token, so token positions in the pool.
    last_page_len_cpu: [bs] of ones on the CPU: tokens in the last page.
    seq_lens_cpu: [bs] on the CPU: KV lengths.
    dtype: of queries and of the pool.
    wrapper: the one that will plan and run this batch.
    initialized: whether it has been planned.
    """

    cu_seqlens_q_cpu: torch.Tensor
    cu_seqlens_k_cpu: torch.Tensor
    cu_seqlens_q_gpu: torch.Tensor
    indices: torch.Tensor
    last_page_len_cpu: torch.Tensor
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    seq_lens_cpu: torch.Tensor
    dtype: torch.dtype
    wrapper: BatchPrefillWithPagedKVCacheWrapper | BatchDecodeWithPagedKVCacheWrapper
    initialized: bool = False

    def get_last_indices(self, bs: int) -> torch.Tensor:
        return self.cu_seqlens_q_gpu[1 : bs + 1] - 1


class FlashInferBackend(BaseAttnBackend):
    """One wrapper for prefill batches, one for decode batches, and one for each captured decode batch.

    Invariants
    - a wrapper is planned and then run to the last layer before anything is planned again, so all of them
      can share their workspaces;
    - `last_event` stands behind the copies of the latest plan: host memory that they read is not written
      again before it has passed.
    """

    def __init__(self, config: ModelConfig, kvcache: BaseKVCachePool) -> None:
        try:
            from flashinfer import (
                BatchDecodeWithPagedKVCacheWrapper,
                BatchPrefillWithPagedKVCacheWrapper,
                CUDAGraphBatchDecodeWithPagedKVCacheWrapper,
            )
        except ImportError as error:
            raise require_kernels("flashinfer-python", "fi", error) from error

        self.config = config
        self.kvcache = kvcache
        self.device = kvcache.device
        tp_size = get_tp_info().size
        self.qo_head_local = div_even(config.num_qo_heads, tp_size, what="number of query heads")
        self.kv_head_local = local_kv_heads(config.num_kv_heads, tp_size)

        self._workspace = torch.empty(FLOAT_WORKSPACE_BYTES, dtype=torch.uint8, device=self.device)
        self.prefill_wrapper = BatchPrefillWithPagedKVCacheWrapper(
            self._workspace, kv_layout="NHD", backend="fa2"
        )
        self._use_tensor_cores = self.qo_head_local // self.kv_head_local >= TENSOR_CORE_GROUP
        self.decode_wrapper = BatchDecodeWithPagedKVCacheWrapper(
            self._workspace, kv_layout="NHD", use_tensor_cores=self._use_tensor_cores, backend="fa2"
        )
        self.decode_wrapper._int_workspace_buffer = self.prefill_wrapper._int_workspace_buffer

        self._graph_wrapper_class = CUDAGraphBatchDecodeWithPagedKVCacheWrapper
        # Size of a captured batch -> the wrapper that its graph runs.
        self._graph_wrappers: dict[int, CUDAGraphBatchDecodeWithPagedKVCacheWrapper] = {}

        self.last_event = new_event(self.device)
        self._ones_cpu = torch.ones(0, dtype=torch.int32)

    def _get_ones_cpu(self, bs: int) -> torch.Tensor:
        """int32 [bs] of ones on the CPU. Only ever read, so batches may share it."""
        if bs > len(self._ones_cpu):
            size = 1 << (bs - 1).bit_length()  # the next power of two: few reallocations as batches grow
            self._ones_cpu = torch.ones(size, dtype=torch.int32, pin_memory=pin(self.device))
        return self._ones_cpu[:bs]

    def prepare_metadata(self, batch: Batch) -> None:
        reqs = batch.padded_reqs
        query_lens = [req.extend_len for req in reqs]
        kv_lens = [req.device_len for req in reqs]
        host = {"dtype": torch.int32, "pin_memory": pin(self.device)}

        kv_indptr = make_indptr(kv_lens, self.device)
        if max(query_lens) == 1:  # one query each, as in every decode
            qo_indptr = torch.arange(len(reqs) + 1, **host)
        elif all(req.cached_len == 0 for req in reqs):  # nothing cached: queries and keys are the same tokens
            qo_indptr = kv_indptr
        else:
            qo_indptr = make_indptr(query_lens, self.device)

        page_table = get_global_ctx().page_table
        batch.attn_metadata = FIMetadata(
            cu_seqlens_q_cpu=qo_indptr,
            cu_seqlens_k_cpu=kv_indptr,
            cu_seqlens_q_gpu=qo_indptr.to(self.device, non_blocking=True),
            indices=torch.cat([page_table[req.table_idx, : req.device_len] for req in reqs]),
            last_page_len_cpu=self._get_ones_cpu(len(reqs)),
            num_qo_heads=self.qo_head_local,
            num_kv_heads=self.kv_head_local,
            head_dim=self.config.head_dim,
            seq_lens_cpu=torch.tensor(kv_lens, **host),
            dtype=self.kvcache.dtype,
            wrapper=self.decode_wrapper if batch.is_decode else self.prefill_wrapper,
        )

    def _initialize_metadata_once(self, metadata: FIMetadata) -> None:
        """Plan the batch, if no earlier layer has."""
        if metadata.initialized:
            return
        # The wrapper stages its schedule in one page-locked buffer of its own, which it is about to
        # overwrite.
        self.last_event.synchronize()
        shared = {
            "num_qo_heads": metadata.num_qo_heads,
            "num_kv_heads": metadata.num_kv_heads,
            "page_size": 1,
            "pos_encoding_mode": "NONE",  # q and k arrive rotated
            "seq_lens": metadata.seq_lens_cpu,
            # Left out, each of these is float16 whatever the tensors are.
            "q_data_type": metadata.dtype,
            "kv_data_type": metadata.dtype,
            "non_blocking": True,
        }
        if metadata.wrapper is not self.prefill_wrapper:
            metadata.wrapper.plan(
                indptr=metadata.cu_seqlens_k_cpu,
                indices=metadata.indices,
                last_page_len=metadata.last_page_len_cpu,
                head_dim=metadata.head_dim,
                **shared,
            )
        else:
            metadata.wrapper.plan(
                qo_indptr=metadata.cu_seqlens_q_cpu,
                paged_kv_indptr=metadata.cu_seqlens_k_cpu,
                paged_kv_indices=metadata.indices,
                paged_kv_last_page_len=metadata.last_page_len_cpu,
                head_dim_qk=metadata.head_dim,
                causal=True,
                **shared,
            )
        self.last_event.record()
        metadata.initialized = True

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer_id: int, batch: Batch
    ) -> torch.Tensor:
        metadata = batch.attn_metadata
        assert isinstance(metadata, FIMetadata)
        self._initialize_metadata_once(metadata)
        self.kvcache.store_kv(k, v, batch.out_loc, layer_id)
        paged_kv = (
            _pages_of_one_token(self.kvcache.k_cache(layer_id)),
            _pages_of_one_token(self.kvcache.v_cache(layer_id)),
        )
        return metadata.wrapper.run(q=q, paged_kv_cache=paged_kv)

    def init_capture_graph(self, max_seq_len: int, sizes: Sequence[int]) -> None:
        """Plans of captured batches are copied into these buffers, which wrappers of all sizes share.

        Requests may have pages in common, so together they may have more than the pool.
        """
        largest = max(sizes)
        indptr = torch.zeros(largest + 1, dtype=torch.int32, device=self.device)
        indices = torch.zeros(largest * max_seq_len, dtype=torch.int32, device=self.device)
        last_page_len = torch.ones(largest, dtype=torch.int32, device=self.device)
        for size in sizes:
            wrapper = self._graph_wrapper_class(
                self._workspace,
                kv_layout="NHD",
                use_tensor_cores=self._use_tensor_cores,
                indptr_buffer=indptr[: size + 1],
                indices_buffer=indices,
                last_page_len_buffer=last_page_len[:size],
            )
            wrapper._backend = "fa2"
            wrapper._int_workspace_buffer = self.prefill_wrapper._int_workspace_buffer
            self._graph_wrappers[size] = wrapper

    def prepare_for_capture(self, batch: Batch) -> None:
        self.prepare_metadata(batch)
        self.prepare_for_replay(batch)

    def prepare_for_replay(self, batch: Batch) -> None:
        """Plan here: a plan reads lengths on the host, which a graph cannot do."""
        metadata = batch.attn_metadata
        assert isinstance(metadata, FIMetadata)
        metadata.wrapper = self._graph_wrappers[batch.padded_size]
        self._initialize_metadata_once(metadata)


def _pages_of_one_token(cache: torch.Tensor) -> torch.Tensor:
    """[num_pages, page_size, H, D] -> [num_pages * page_size, 1, H, D], the same memory."""
    return cache.view(-1, 1, *cache.shape[2:])
