"""Prefill: any number of new tokens a request, over a paged KV cache (here), over K and V that lie one after
the other (`_ragged`), or of a single request (`_single`).

Interface of flashinfer 0.7.2.post1 (`flashinfer/prefill.py`), computed on the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from fake_kernels.checks_masks import MaskOf
from fake_kernels.checks_paged import PagedMetadata
from fake_kernels.findings import require_context

from flashinfer._options import check_positions, only_default, path_of, planned_dtypes, require_numbers
from flashinfer._paged import PagedWrapper, require_window
from flashinfer._prefill import PrefillWrapper
from flashinfer._ragged import BatchPrefillWithRaggedKVCacheWrapper
from flashinfer._single import single_prefill_with_kv_cache, single_prefill_with_kv_cache_return_lse
from flashinfer._workspace_size import PrefillWorkspaceSize

_FIXED_BATCH = (
    "The batch size should be fixed during the lifecycle of the wrapper in cuda graph mode, the runtime batch "
    "size {} mismatches the batch size {}  set during initialization."
)


class BatchPrefillWithPagedKVCacheWrapper(PrefillWorkspaceSize, PrefillWrapper, PagedWrapper):
    """Prefill and append attention of a batch: `plan` once, `run` for every layer.

    float_workspace_buffer: uint8 [bytes], 16-byte aligned. kv_layout: "NHD" or "HND". backend "auto" is
    what the library picks on an H200 ("fa3" for half types with head_dim 64, 128 or 256 and neither mask nor
    positions, else "fa2") and stays as picked by the first plan. With use_cuda_graph the first four buffers
    are required, and those of the mask (uint8 [most bytes], int32 [B+1]) for batches with one. jit_args: see
    `flashinfer._jit`; with variant_owns_mask the variant decides alone and causal is ignored.
    """

    _array_names: Mapping[str, str] = MappingProxyType(
        {
            "qo_name": "qo_indptr",
            "indptr_name": "paged_kv_indptr",
            "indices_name": "paged_kv_indices",
            "last_name": "paged_kv_last_page_len",
        }
    )
    """What the caller of plan calls its arrays; another name for a level of a cascade."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        paged_kv_indptr_buf: torch.Tensor | None = None,
        paged_kv_indices_buf: torch.Tensor | None = None,
        paged_kv_last_page_len_buf: torch.Tensor | None = None,
        custom_mask_buf: torch.Tensor | None = None,
        mask_indptr_buf: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: list[Any] | None = None,
        jit_kwargs: dict[str, Any] | None = None,
        variant_owns_mask: bool = False,
    ) -> None:
        require_context()
        self._start(float_workspace_buffer, kv_layout, backend, use_cuda_graph)
        self._start_prefill(jit_args, jit_kwargs, variant_owns_mask)
        if use_cuda_graph:
            kept = self._graph_buffers_of(
                "{} should be a torch.Tensor in CUDA graph mode",
                qo=("qo_indptr_buf", qo_indptr_buf),
                indptr=("paged_kv_indptr_buf", paged_kv_indptr_buf),
                indices=("paged_kv_indices_buf", paged_kv_indices_buf),
                last=("paged_kv_last_page_len_buf", paged_kv_last_page_len_buf),
            )
            self._fixed_batch_size = len(kept["qo"]) - 1
            if len(kept["indptr"]) != self._fixed_batch_size + 1:
                self._graph_error(
                    "paged_kv_indptr_buf", "The length of paged_kv_indptr_buf should be batch_size + 1."
                )
            if len(kept["last"]) != self._fixed_batch_size:
                self._graph_error(
                    "paged_kv_last_page_len_buf",
                    "The length of paged_kv_last_page_len_buf should be batch_size.",
                )
            self._keep_graph_buffers(kept, custom_mask_buf, mask_indptr_buf)
        else:
            only_default(custom_mask_buf=(custom_mask_buf, None), mask_indptr_buf=(mask_indptr_buf, None))

    def plan(
        self,
        qo_indptr: torch.Tensor,
        paged_kv_indptr: torch.Tensor,
        paged_kv_indices: torch.Tensor,
        paged_kv_last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        sm_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: str | torch.dtype = "float16",
        kv_data_type: str | torch.dtype | None = None,
        o_data_type: str | torch.dtype | None = None,
        non_blocking: bool = True,
        prefix_len_ptr: torch.Tensor | None = None,
        token_pos_in_items_ptr: torch.Tensor | None = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        seq_lens_q: torch.Tensor | None = None,
        block_tables: torch.Tensor | None = None,
        max_token_per_sequence: int | None = None,
        max_sequence_kv: int | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        uniform_q_len: int | None = None,
    ) -> None:
        """Plan a batch of B requests for all layers.

        qo_indptr int32 [B+1]: running sum of new tokens, from 0. paged_kv_indptr int32 [B+1]: running sum
        of pages, from 0. paged_kv_indices int32 [>= paged_kv_indptr[-1]]: page numbers.
        paged_kv_last_page_len int32 [B]: tokens in each last page, 1..page_size (0 without pages).
        custom_mask bool [sum of rows * KV length]: what each row of q sees, request after request, row after
        row; it takes the place of causal, a window stays. packed_custom_mask: the same packed (`packbits`,
        "little"), for one request. Note that causal is False and q_data_type float16 unless given. Split
        options change no number.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        require_numbers(arguments, self._path(), during="plan")
        q_dtype, kv_dtype = planned_dtypes(q_data_type, kv_data_type, o_data_type, self._path())
        only_default(
            use_fp16_qk_reduction=(use_fp16_qk_reduction, False),
            prefix_len_ptr=(prefix_len_ptr, None),
            token_pos_in_items_ptr=(token_pos_in_items_ptr, None),
            token_pos_in_items_len=(token_pos_in_items_len, 0),
            max_item_len_ptr=(max_item_len_ptr, None),
            seq_lens_q=(seq_lens_q, None),
            block_tables=(block_tables, None),
            max_token_per_sequence=(max_token_per_sequence, None),
            max_sequence_kv=(max_sequence_kv, None),
            uniform_q_len=(uniform_q_len, None),
        )
        require_window(window_left)
        head_dim_vo = head_dim_qk if head_dim_vo is None else head_dim_vo
        masked = custom_mask is not None or packed_custom_mask is not None
        backend = self._backend_for(
            q_dtype, head_dim_qk, head_dim_vo, mask=masked, positions=pos_encoding_mode
        )
        path = path_of(backend)
        check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
        meta = PagedMetadata(
            paged_kv_indptr,
            paged_kv_indices,
            paged_kv_last_page_len,
            page_size,
            seq_lens,
            qo_indptr,
            copied=self._use_cuda_graph,
            **self._array_names,
        )
        self._check_vectors(meta, path)
        if self._use_cuda_graph:
            self._check_graph_batch(meta)
        plan = self._plan_pages(
            meta,
            path,
            _mask_of(meta, custom_mask, packed_custom_mask),
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim_qk,
            head_dim_vo=head_dim_vo,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            non_blocking=non_blocking,
        )
        if self._use_cuda_graph and self._max_total_num_rows is None:
            self._max_total_num_rows = plan.rows
        self._backend = backend
        self._keep(plan, arguments)
        self._keep_scoring(
            causal=causal,
            window_left=window_left,
            logits_soft_cap=logits_soft_cap,
            sm_scale=sm_scale,
            pos_encoding_mode=pos_encoding_mode,
            rope_scale=rope_scale,
            rope_theta=rope_theta,
        )

    begin_forward = plan

    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        *args: Any,
        q_scale: float | torch.Tensor | None = None,
        k_scale: float | torch.Tensor | None = None,
        v_scale: float | torch.Tensor | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        lse_base: str = "log2",
        lse_layout: str = "NH",
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        kv_cache_sf: torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        use_fp16_softmax: bool | None = None,
        uses_spcompress: bool | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Attention of one layer: out [qo_indptr[-1], num_qo_heads, head_dim_vo] of q's type.

        q: [qo_indptr[-1], num_qo_heads, head_dim_qk]. paged_kv_cache: see `flashinfer._cache.unpack_cache`.
        args: the tensors and scalars of a JIT variant. sinks are for other backends and refused.
        With return_lse also the LSE, float32 [tokens, heads] (lse_layout "HN": [heads, tokens]), base 2
        unless lse_base is "ln". Rows that see no KV are 0 with LSE -inf. enable_pdl changes no number.
        """
        only_default(
            q_scale=(q_scale, None),
            k_scale=(k_scale, None),
            v_scale=(v_scale, None),
            kv_cache_sf=(kv_cache_sf, None),
            skip_softmax_threshold_scale_factor=(skip_softmax_threshold_scale_factor, None),
            use_fp16_softmax=(use_fp16_softmax, None),
            uses_spcompress=(uses_spcompress, None),
        )
        require_numbers({"return_lse": return_lse}, self._path(), during="run")
        self._check_run_window(window_left)
        self._check_sinks(sinks, args)
        self._check_lse_form(lse_base, lse_layout)
        result, natural = self._launch_pages(
            q,
            paged_kv_cache,
            args=args,
            window_left=window_left,
            with_lse=return_lse or lse is not None,
        )
        return self._results(result, natural, out, lse, lse_base, lse_layout, asked=return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(
        self,
        q: torch.Tensor,
        paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        k_scale: float | None = None,
        v_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Deprecated: like `run`, but its own options replace those of the plan; causal too, and its
        default is False whatever the plan said."""
        only_default(use_fp16_qk_reduction=(use_fp16_qk_reduction, False))
        scoring = (pos_encoding_mode, window_left, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        self._override(*scoring, causal=causal)
        return self.run(q, paged_kv_cache, k_scale=k_scale, v_scale=v_scale)

    def forward_return_lse(
        self,
        q: torch.Tensor,
        paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        k_scale: float | None = None,
        v_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Deprecated: `forward` that also returns the LSE."""
        only_default(use_fp16_qk_reduction=(use_fp16_qk_reduction, False))
        scoring = (pos_encoding_mode, window_left, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        self._override(*scoring, causal=causal)
        return self.run(q, paged_kv_cache, k_scale=k_scale, v_scale=v_scale, return_lse=True)

    def _check_graph_batch(self, meta: PagedMetadata) -> None:
        assert self._graph_buffers is not None
        assert meta.qo_indptr is not None
        self._check_graph_rows(meta.qo_indptr, _FIXED_BATCH)
        if len(meta.indices) > len(self._graph_buffers["indices"]):
            self._graph_error(
                "paged_kv_indices", "The length of paged_kv_indices exceeds the allocated buffer size."
            )


def _mask_of(
    meta: PagedMetadata, custom_mask: torch.Tensor | None, packed_custom_mask: torch.Tensor | None
) -> MaskOf | None:
    """The mask of a paged batch. Lengths are plan's: (pages - 1) * page_size + last_page_len, which is
    negative without pages (prefill.py, _compute_page_mask_indptr)."""
    if (custom_mask is None and packed_custom_mask is None) or meta.qo_indptr is None:
        return None
    if not all(
        t.dtype in (torch.int32, torch.int64) for t in (meta.kv_indptr, meta.last_page_len, meta.qo_indptr)
    ):
        return None  # the checks of the arrays refuse other types
    pages = (meta.kv_indptr[1:] - meta.kv_indptr[:-1]).tolist()
    last = meta.last_page_len.tolist()
    rows = (meta.qo_indptr[1:] - meta.qo_indptr[:-1]).tolist()
    lengths = [(n - 1) * meta.page_size + end for n, end in zip(pages, last, strict=False)]
    if not len(rows) == len(pages) == len(last):
        return None  # the checks of the arrays have refused the batch by then
    return MaskOf(custom_mask, packed_custom_mask, rows, lengths, paged=True)


__all__ = [
    "BatchPrefillWithPagedKVCacheWrapper",
    "BatchPrefillWithRaggedKVCacheWrapper",
    "single_prefill_with_kv_cache",
    "single_prefill_with_kv_cache_return_lse",
]
