"""Batch prefill over a paged KV cache: any number of new tokens a request, plan once, run every layer.

Interface of flashinfer 0.7.2.post1 (`flashinfer/prefill.py`), computed on the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_paged import PagedMetadata
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, require_context
from fake_kernels.outcomes import Path, raises
from fake_kernels.reference import Variant

from flashinfer._plan import Plan
from flashinfer._wrapper import LN2, PagedWrapper, canonical_dtype, only_default


class BatchPrefillWithPagedKVCacheWrapper(PagedWrapper):
    """Prefill and append attention of a batch: `plan` once, `run` for every layer.

    float_workspace_buffer: uint8 [bytes], 16-byte aligned. kv_layout: "NHD" or "HND". backend "auto" is
    what the library picks on an H200 ("fa3" for half types with head_dim 64, 128 or 256, else "fa2") and
    stays as picked by the first plan. With use_cuda_graph the four buffers are required.
    """

    _default_path = "fa2"

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
        only_default(
            custom_mask_buf=(custom_mask_buf, None),
            mask_indptr_buf=(mask_indptr_buf, None),
            jit_args=(jit_args, None),
            jit_kwargs=(jit_kwargs, None),
            variant_owns_mask=(variant_owns_mask, False),
        )
        self._start(float_workspace_buffer, kv_layout, backend, use_cuda_graph)
        self._max_total_num_rows: int | None = None
        if use_cuda_graph:
            buffers = {
                "qo": ("qo_indptr_buf", qo_indptr_buf),
                "indptr": ("paged_kv_indptr_buf", paged_kv_indptr_buf),
                "indices": ("paged_kv_indices_buf", paged_kv_indices_buf),
                "last": ("paged_kv_last_page_len_buf", paged_kv_last_page_len_buf),
            }
            kept: dict[str, torch.Tensor] = {}
            for key, (name, buffer) in buffers.items():
                if not isinstance(buffer, torch.Tensor):
                    self._graph_error(name, f"{name} should be a torch.Tensor in CUDA graph mode")
                else:
                    kept[key] = buffer
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
            self._graph_buffers = kept

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
        Note that causal is False and q_data_type float16 unless given. Split options change no number.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        q_dtype = canonical_dtype(q_data_type)
        kv_dtype = q_dtype if kv_data_type is None else canonical_dtype(kv_data_type)
        o_dtype = q_dtype if o_data_type is None else canonical_dtype(o_data_type)
        self._check_common_options(pos_encoding_mode, rope_scale, rope_theta, o_dtype, q_dtype)
        only_default(
            head_dim_vo=(head_dim_vo, head_dim_qk if head_dim_vo is not None else None),
            custom_mask=(custom_mask, None),
            packed_custom_mask=(packed_custom_mask, None),
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
        if window_left < -1:
            raise not_modelled("window_left", window_left)
        backend = self._backend if self._backend != "auto" else _pick_backend(q_dtype, head_dim_qk)
        meta = PagedMetadata(
            paged_kv_indptr,
            paged_kv_indices,
            paged_kv_last_page_len,
            page_size,
            seq_lens,
            qo_indptr,
            copied=self._use_cuda_graph,
            indptr_name="paged_kv_indptr",
            indices_name="paged_kv_indices",
            last_name="paged_kv_last_page_len",
        )
        self._check_vectors(meta)
        if self._use_cuda_graph:
            self._check_graph_batch(meta)
        plan = self._make_plan(
            meta,
            _path_of(backend),
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim_qk,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            non_blocking=non_blocking,
        )
        if self._use_cuda_graph and self._max_total_num_rows is None:
            self._max_total_num_rows = plan.rows
        self._backend = backend
        self._causal = causal
        self._window_left = window_left
        self._logits_soft_cap = logits_soft_cap
        self._sm_scale = sm_scale
        self._keep(plan, arguments)

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
        """Attention of one layer: out [qo_indptr[-1], num_qo_heads, head_dim] of q's type.

        q: [qo_indptr[-1], num_qo_heads, head_dim]. paged_kv_cache: see `flashinfer._cache.unpack_cache`.
        With return_lse also the LSE, float32 [tokens, heads] (lse_layout "HN": [heads, tokens]), base 2
        unless lse_base is "ln". Rows that see no KV are 0 with LSE -inf. enable_pdl changes no number.
        """
        only_default(
            args=(args, ()),
            q_scale=(q_scale, None),
            k_scale=(k_scale, None),
            v_scale=(v_scale, None),
            sinks=(sinks, None),
            kv_cache_sf=(kv_cache_sf, None),
            skip_softmax_threshold_scale_factor=(skip_softmax_threshold_scale_factor, None),
            use_fp16_softmax=(use_fp16_softmax, None),
            uses_spcompress=(uses_spcompress, None),
        )
        for name, value, allowed in (
            ("lse_base", lse_base, ("log2", "ln")),
            ("lse_layout", lse_layout, ("NH", "HN")),
        ):
            if value not in allowed:
                message = f"{name} must be one of {allowed}, got {value!r}"
                self._refuse_option(name, value, ", ".join(allowed), ValueError, message)
        result, natural = self._launch(
            q, paged_kv_cache, self._variant, window_left=window_left, with_lse=return_lse
        )
        if out is not None:
            self._check_out(out, tuple(q.shape), q.dtype, "out")
            result = out.copy_(result)
        if natural is None:
            self.run_count += 1
            return result
        told = natural if lse_base == "ln" else natural / LN2
        told = told if lse_layout == "NH" else told.t().contiguous()
        if lse is not None:
            self._check_out(lse, tuple(told.shape), torch.float32, "lse")
            told = lse.copy_(told)
        self.run_count += 1
        return result, told

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
        self._override(pos_encoding_mode, window_left, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        self._causal = causal
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
        self._override(pos_encoding_mode, window_left, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        self._causal = causal
        return self.run(q, paged_kv_cache, k_scale=k_scale, v_scale=v_scale, return_lse=True)

    def _variant(self, q: torch.Tensor) -> Variant:
        return Variant(
            scale=q.shape[-1] ** -0.5 if self._sm_scale is None else self._sm_scale,
            causal=self._causal,
            window_left=self._window_left,
            soft_cap=self._logits_soft_cap or 0.0,
        )

    def _path(self) -> Path:
        return _path_of(self._backend)

    def _row_findings(self, plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
        if q.shape[0] == plan.rows:
            return
        outcome = raises(
            ValueError,
            f"q.shape[0] ({q.shape[0]}) does not match qo_indptr[-1] ({plan.rows}). For paged "
            f"prefill, q must "
            "have shape [total_tokens, num_heads, head_dim] where total_tokens = qo_indptr[-1].",
            "run",
        )
        yield Finding(m.Q_ROWS, "q", {"value": q.shape[0], "planned": plan.rows}, outcome)

    def _check_graph_batch(self, meta: PagedMetadata) -> None:
        assert self._graph_buffers is not None
        assert meta.qo_indptr is not None
        rows = int(meta.qo_indptr[-1])
        if self._max_total_num_rows is not None and rows > self._max_total_num_rows:
            self._graph_error(
                "qo_indptr",
                f"The total number of rows in qo_indptr {rows} in cuda graph mode cannot exceed the "
                f"number of "
                f"rows set during initialization {self._max_total_num_rows}.",
            )
        if meta.batch != self._fixed_batch_size:
            self._graph_error(
                "qo_indptr",
                "The batch size should be fixed during the lifecycle of the wrapper in cuda graph mode, the "
                f"runtime batch size {meta.batch} mismatches the batch size {self._fixed_batch_size}  set "
                "during initialization.",
            )
        if len(meta.indices) > len(self._graph_buffers["indices"]):
            self._graph_error(
                "paged_kv_indices", "The length of paged_kv_indices exceeds the allocated buffer size."
            )


def _pick_backend(q_dtype: torch.dtype, head_dim: int) -> str:
    """What "auto" becomes on an H200 (flashinfer/utils.py, determine_attention_backend)."""
    half = q_dtype in (torch.float16, torch.bfloat16)
    return "fa3" if half and head_dim in (64, 128, 256) else "fa2"


def _path_of(backend: str) -> Path:
    return "fa3" if backend == "fa3" else "fa2"


__all__ = ["BatchPrefillWithPagedKVCacheWrapper"]
