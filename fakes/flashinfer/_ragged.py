"""Batch prefill over ragged KV: the K and V of all requests one after the other, without pages.

Interface of flashinfer 0.7.2.post1 (`flashinfer/prefill.py`), computed on the CPU. kv_indptr counts tokens
here; to the books a ragged batch is a paged one with pages of one token in order.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from fake_kernels.checks_masks import MaskOf
from fake_kernels.checks_ragged import check_kv_rows, check_layout, check_ragged, check_vectors
from fake_kernels.checks_values import check_tensors
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.memory import longer
from fake_kernels.mistakes_masks import STALE_MASK
from fake_kernels.mistakes_wrappers import LAYOUT_SHAPE

from flashinfer._options import check_positions, only_default, path_of, planned_dtypes, require_numbers
from flashinfer._paged import require_window
from flashinfer._prefill import PrefillWrapper

_FIXED_BATCH = (
    "The batch size should be fixed in cudagraph mode, the runtime batch size {}  mismatches the batch size set "
    "during initialization {}."
)


class BatchPrefillWithRaggedKVCacheWrapper(PrefillWrapper):
    """Prefill of a batch whose K and V are contiguous tensors: `plan` once, `run` for every layer.

    float_workspace_buffer: uint8 [bytes], 16-byte aligned. kv_layout: "NHD" or "HND", of k and v (HND not on
    fa3). backend "auto" is what the library picks on an H200, anew in every plan. With use_cuda_graph the two indptr
    buffers (int32 [B+1]) are required. jit_args, variant_owns_mask: as in the paged wrapper.
    """

    _kind = "ragged"

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: torch.Tensor | None = None,
        kv_indptr_buf: torch.Tensor | None = None,
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
        self._requested_backend = backend
        self._had_mask = False
        if use_cuda_graph:
            kept = self._graph_buffers_of(
                "{} should be a torch.Tensor in cuda graph mode",
                qo=("qo_indptr_buf", qo_indptr_buf),
                indptr=("kv_indptr_buf", kv_indptr_buf),
            )
            self._fixed_batch_size = len(kept["qo"]) - 1
            if len(kept["indptr"]) != self._fixed_batch_size + 1:
                self._graph_error(
                    "kv_indptr_buf",
                    f"The length of kv_indptr_buf ({len(kept['indptr'])}) should be the same as qo_indptr_buf "
                    f"({self._fixed_batch_size}).",
                )
            self._keep_graph_buffers(kept, custom_mask_buf, mask_indptr_buf)
        else:
            only_default(custom_mask_buf=(custom_mask_buf, None), mask_indptr_buf=(mask_indptr_buf, None))

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int | None = None,
        custom_mask: torch.Tensor | None = None,
        packed_custom_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
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
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        seq_lens: torch.Tensor | None = None,
        seq_lens_q: torch.Tensor | None = None,
        max_token_per_sequence: int | None = None,
        max_sequence_kv: int | None = None,
        v_indptr: torch.Tensor | None = None,
        o_indptr: torch.Tensor | None = None,
        uniform_q_len: int | None = None,
    ) -> None:
        """Plan a batch of B requests for all layers.

        qo_indptr, kv_indptr int32 [B+1]: running sums of q rows and of KV tokens, from 0. custom_mask,
        packed_custom_mask: as in the paged wrapper. Note that causal is False and q_data_type float16 unless
        given. Split options change no number.
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
            seq_lens=(seq_lens, None),
            seq_lens_q=(seq_lens_q, None),
            max_token_per_sequence=(max_token_per_sequence, None),
            max_sequence_kv=(max_sequence_kv, None),
            v_indptr=(v_indptr, None),
            o_indptr=(o_indptr, None),
            uniform_q_len=(uniform_q_len, None),
        )
        require_window(window_left)
        head_dim_vo = head_dim_qk if head_dim_vo is None else head_dim_vo
        masked = custom_mask is not None or packed_custom_mask is not None
        if self._jit is None:
            self._backend = self._requested_backend
        backend = self._backend_for(
            q_dtype, head_dim_qk, head_dim_vo, mask=masked, positions=pos_encoding_mode
        )
        path = path_of(backend)
        check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
        settle(check_vectors(qo_indptr=qo_indptr, kv_indptr=kv_indptr), path, during="plan")
        # Checked before anything is computed from them: pages of one token need sums that make sense.
        settle(check_ragged(qo_indptr, kv_indptr), path, during="plan")
        if self._use_cuda_graph:
            self._check_graph_rows(qo_indptr, _FIXED_BATCH)
        lengths = kv_indptr[1:] - kv_indptr[:-1]
        mask = None
        if masked:
            rows = (qo_indptr[1:] - qo_indptr[:-1]).tolist()
            mask = MaskOf(custom_mask, packed_custom_mask, rows, lengths.tolist())

        def findings() -> Iterator[Finding]:
            yield from check_layout(self._kv_layout, path)
            if self._had_mask and not masked and not self._use_cuda_graph:
                yield Finding(STALE_MASK, "custom_mask")

        plan = self._make_plan(
            {
                "indptr": ("kv_indptr", kv_indptr),
                "last": ("", lengths.clamp(0, 1)),
                "qo": ("qo_indptr", qo_indptr),
            },
            findings(),
            path,
            batch=len(qo_indptr) - 1,
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim_qk,
            head_dim_vo=head_dim_vo,
            page_size=1,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            non_blocking=non_blocking,
            mask=mask,
            cache_names=("k", "v"),
        )
        if self._use_cuda_graph and self._max_total_num_rows is None:
            self._max_total_num_rows = plan.rows
        self._backend = backend
        self._had_mask = self._had_mask or masked
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
        k: torch.Tensor,
        v: torch.Tensor,
        *args: Any,
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        o_scale: float | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        lse_base: str = "log2",
        lse_layout: str = "NH",
        enable_pdl: bool | None = None,
        kv_cache_sf: torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Attention of one layer: out [qo_indptr[-1], num_qo_heads, head_dim_vo] of q's type.

        q: [qo_indptr[-1], num_qo_heads, head_dim_qk]. k, v: [kv_indptr[-1], num_kv_heads, head_dim_qk or vo]
        in NHD, tokens and heads the other way round in HND. LSE as in the paged wrapper. args: the tensors and
        scalars of a JIT variant. enable_pdl changes no number.
        """
        require_context()
        only_default(
            q_scale=(q_scale, None),
            k_scale=(k_scale, None),
            v_scale=(v_scale, None),
            o_scale=(o_scale, None),
            kv_cache_sf=(kv_cache_sf, None),
        )
        path = self._path()
        require_numbers({"return_lse": return_lse}, path, during="run")
        self._check_lse_form(lse_base, lse_layout)
        plan = self._planned(path)
        settle(check_tensors("dtype", q=q, k=k, v=v), path, during="run")
        by_token: list[torch.Tensor] = []
        for name, given in (("k", k), ("v", v)):
            if given.ndim != 3:
                params = {"shape": list(given.shape), "expected": "3-D"}
                settle([Finding(LAYOUT_SHAPE, name, params)], path, during="run")
            by_token.append(given if self._kv_layout == "NHD" else given.transpose(0, 1))
        rows = int(plan.arrays["indptr"][-1])
        heads = q.shape[1] if q.ndim > 1 else 0
        reads_on = path == "fa2" and self._kv_layout == "NHD"
        found = check_kv_rows(rows, heads, path, reads_on=reads_on, k=by_token[0], v=by_token[1])
        settle(found, path, during="run")
        if any(len(tensor) < rows for tensor in by_token):
            by_token = [longer(tensor, rows, reads_on=reads_on) for tensor in by_token]
        result, natural = self._launch(
            q,
            by_token[0].unsqueeze(1),
            by_token[1].unsqueeze(1),
            args=args,
            with_lse=return_lse or lse is not None,
            layout="NHD",
        )
        return self._results(result, natural, out, lse, lse_base, lse_layout, asked=return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
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
        return self.run(q, k, v)

    def forward_return_lse(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
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
        return self.run(q, k, v, return_lse=True)


__all__ = ["BatchPrefillWithRaggedKVCacheWrapper"]
