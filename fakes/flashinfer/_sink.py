"""Paged prefill with attention sinks: the paged wrapper with a variant of its own compiled in.

Interface of flashinfer 0.7.2.post1 (`flashinfer/attention/_core.py`), computed on the CPU.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from fake_kernels.checks_masks import check_variant_sinks, sinks_as_read
from fake_kernels.findings import Finding, settle
from fake_kernels.mistakes_masks import SINK_WINDOW
from fake_kernels.variants import AttentionVariant, Chain, ScaledScores, Scores, Sink, SlidingWindow

from flashinfer._options import only_default, pick_backend
from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper


def attention_sink(params: SimpleNamespace, at: Scores) -> AttentionVariant:
    """The variant AttentionSink: scale, window and a sink a head (jit/attention/variants.py)."""
    parts = [ScaledScores(params.sm_scale), Sink(params.sink)]
    if params.window_left >= 0:
        parts.append(SlidingWindow(params.window_left))
    return Chain(parts)


class BatchAttentionWithAttentionSinkWrapper(BatchPrefillWithPagedKVCacheWrapper):
    """`BatchPrefillWithPagedKVCacheWrapper` whose run takes sinks: run(q, paged_kv_cache, sink, sm_scale).

    sink: float32 [num_qo_heads], logits. sm_scale may be left out and is then the plan's. The types, head
    dimensions and, on fa3, whether there is a window are fixed here, because a kernel is compiled for them; plan has
    to agree. Soft caps and positions are not part of the variant.
    """

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
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        q_data_type: torch.dtype = torch.bfloat16,
        kv_data_type: torch.dtype = torch.bfloat16,
        head_dim_qk: int = 128,
        head_dim_vo: int = 128,
        window_left: int = -1,
    ) -> None:
        only_default(
            pos_encoding_mode=(pos_encoding_mode, "NONE"),
            use_fp16_qk_reduction=(use_fp16_qk_reduction, False),
        )
        if backend == "auto":
            masked = custom_mask_buf is not None
            backend = pick_backend(q_data_type, head_dim_qk, head_dim_vo, mask=masked, positions="NONE")
        self._compiled_window = window_left >= 0
        super().__init__(
            float_workspace_buffer,
            kv_layout,
            use_cuda_graph,
            qo_indptr_buf,
            paged_kv_indptr_buf,
            paged_kv_indices_buf,
            paged_kv_last_page_len_buf,
            custom_mask_buf,
            mask_indptr_buf,
            backend=backend,
            jit_args=[
                "batch_prefill_attention_sink",
                q_data_type,
                kv_data_type,
                q_data_type,
                torch.int32,
                head_dim_qk,
                head_dim_vo,
                ["sink"],
                ["float"],
                ["sm_scale"],
                ["double"],
                "AttentionSink",
                attention_sink,
            ],
            jit_kwargs={"use_sliding_window": self._compiled_window},
        )

    def _launch_pages(
        self, q: torch.Tensor, paged_kv_cache: object, **how: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if how.get("args"):
            sinks, *scale = how["args"]
            heads = q.shape[1]
            settle(check_variant_sinks("args[0]", sinks, heads, self._path()), self._path(), during="run")
            if sinks.shape != (heads,) or sinks.dtype != torch.float32:
                how["args"] = (sinks_as_read(sinks, heads), *scale)
        if self._path() == "fa3" and (self._window_left >= 0) != self._compiled_window:
            told = {"value": self._window_left, "planned": "a window" if self._compiled_window else "none"}
            told["planned_zh"] = "有窗口" if self._compiled_window else "没有窗口"
            settle([Finding(SINK_WINDOW, "window_left", told)], self._path(), during="run")
        return super()._launch_pages(q, paged_kv_cache, **how)


__all__ = ["BatchAttentionWithAttentionSinkWrapper"]
