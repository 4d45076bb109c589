"""Cascade attention: KV that several requests share is read once a level, and the levels' states are merged.

Interface of flashinfer 0.7.2.post1 (`flashinfer/cascade.py`), computed on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from fake_kernels import mode
from fake_kernels.checks_levels import check_levels
from fake_kernels.checks_values import check_buffers, check_numbers, check_tensors
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.mistakes_wrappers import LEVEL_ROWS, LEVELS_COUNT
from fake_kernels.schedule import PlanInfo
from fake_kernels.states import merged

from flashinfer._plan import kept_arguments
from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper


class MultiLevelCascadeAttentionWrapper:
    """Attention over `num_levels` paged levels, the widest shared first, each request's own last.

    Level l divides the rows of q into segments (qo_indptr_arr[l]) and gives each segment pages of its own.
    All levels share one pool of pages and one page size. float_workspace_buffer: uint8 [bytes], 16-byte
    aligned. With use_cuda_graph each array of buffers has one entry a level.

    Invariant: level l is `_batch_prefill_wrappers[l]`, an ordinary paged wrapper with an int workspace of
    its own.
    """

    def __init__(
        self,
        num_levels: int,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf_arr: list[torch.Tensor] | None = None,
        paged_kv_indptr_buf_arr: list[torch.Tensor] | None = None,
        paged_kv_indices_buf_arr: list[torch.Tensor] | None = None,
        paged_kv_last_page_len_buf_arr: list[torch.Tensor] | None = None,
    ) -> None:
        require_context()
        settle(check_numbers({"num_levels": num_levels}), "fa2", during="plan")
        if num_levels < 1:
            raise not_modelled("num_levels", num_levels)
        self._use_cuda_graph = use_cuda_graph
        self._num_levels = num_levels
        self._kv_layout = kv_layout
        self.run_count = 0
        self.plan_count = 0
        self.last_plan: dict[str, Any] | None = None
        buffers: list[dict[str, Any]] = [{} for _ in range(num_levels)]
        if use_cuda_graph:
            named = {
                "qo_indptr_buf": qo_indptr_buf_arr,
                "paged_kv_indptr_buf": paged_kv_indptr_buf_arr,
                "paged_kv_indices_buf": paged_kv_indices_buf_arr,
                "paged_kv_last_page_len_buf": paged_kv_last_page_len_buf_arr,
            }
            self._check_counts({f"{name}_arr": array for name, array in named.items()})
            for name, array in named.items():
                each = {f"{name}_arr[{i}]": buffer for i, buffer in enumerate(array or ())}
                settle(check_tensors("to", **each), "fa2", during="plan")
                typed = {argument: (buffer, torch.int32) for argument, buffer in each.items()}
                settle(check_buffers(typed), "fa2", during="plan")
            buffers = [
                {name: array[level] for name, array in named.items() if array is not None}
                for level in range(num_levels)
            ]
        self._batch_prefill_wrappers = [
            BatchPrefillWithPagedKVCacheWrapper(
                float_workspace_buffer, kv_layout, use_cuda_graph=use_cuda_graph, **kept
            )
            for kept in buffers
        ]
        for level, wrapper in enumerate(self._batch_prefill_wrappers):
            wrapper._array_names = {
                "qo_name": f"qo_indptr_arr[{level}]",
                "indptr_name": f"paged_kv_indptr_arr[{level}]",
                "indices_name": f"paged_kv_indices_arr[{level}]",
                "last_name": f"paged_kv_last_page_len[{level}]",
            }

    @property
    def is_cuda_graph_enabled(self) -> bool:
        """Whether the levels work in buffers fixed at construction."""
        return self._use_cuda_graph

    @property
    def plan_info(self) -> tuple[PlanInfo | None, ...]:
        """The schedule of each level; see `flashinfer._schedule.Scheduled`."""
        return tuple(wrapper.plan_info for wrapper in self._batch_prefill_wrappers)

    def reset_workspace_buffer(
        self, float_workspace_buffer: torch.Tensor, int_workspace_buffers: list[torch.Tensor]
    ) -> None:
        """Replace the workspaces, uint8 [bytes]: one float workspace for all levels, an int one for each."""
        self._check_counts({"int_workspace_buffers": int_workspace_buffers})
        for wrapper, int_workspace in zip(self._batch_prefill_wrappers, int_workspace_buffers, strict=True):
            wrapper.reset_workspace_buffer(float_workspace_buffer, int_workspace)

    def plan(
        self,
        qo_indptr_arr: list[torch.Tensor],
        paged_kv_indptr_arr: list[torch.Tensor],
        paged_kv_indices_arr: list[torch.Tensor],
        paged_kv_last_page_len: list[torch.Tensor],
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
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
    ) -> None:
        """Plan a batch for all layers: for each level the arrays of a paged prefill plan, int32.

        Every qo_indptr ends at the rows of q. causal holds in the last level only: rows see all of what lies
        above. Positions and window_left count within each level for itself.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        settle(check_numbers(arguments), "fa2", during="plan")
        arrays = {
            "qo_indptr_arr": qo_indptr_arr,
            "paged_kv_indptr_arr": paged_kv_indptr_arr,
            "paged_kv_indices_arr": paged_kv_indices_arr,
            "paged_kv_last_page_len": paged_kv_last_page_len,
        }
        self._check_counts(arrays)
        if mode.is_strict():  # the library's plan says nothing; its run raises at the level that differs
            settle(_row_findings(qo_indptr_arr), "fa2", during="plan")
            arrays_of_levels = zip(qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, strict=True)
            settle(check_levels(list(arrays_of_levels), causal), "fa2", during="plan")
        levels = zip(self._batch_prefill_wrappers, *arrays.values(), strict=True)
        for level, (wrapper, qo_indptr, kv_indptr, indices, last) in enumerate(levels):
            wrapper.plan(
                qo_indptr,
                kv_indptr,
                indices,
                last,
                num_qo_heads,
                num_kv_heads,
                head_dim,
                page_size,
                causal=causal and level == self._num_levels - 1,
                pos_encoding_mode=pos_encoding_mode,
                use_fp16_qk_reduction=use_fp16_qk_reduction,
                sm_scale=sm_scale,
                window_left=window_left,
                logits_soft_cap=logits_soft_cap,
                rope_scale=rope_scale,
                rope_theta=rope_theta,
                q_data_type=q_data_type,
                kv_data_type=kv_data_type,
            )
        self.plan_count += 1
        self.last_plan = kept_arguments(arguments)

    begin_forward = plan

    def run(
        self, q: torch.Tensor, paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """Attention of one layer over all levels: out [rows, num_qo_heads, head_dim] of q's type.

        q: [rows, num_qo_heads, head_dim]. paged_kv_cache: see `flashinfer._cache.unpack_cache`. The states
        are merged from the last level on, the output rounded to q's type each time (cascade.py, run).
        """
        out, lse = self._batch_prefill_wrappers[-1].run_return_lse(q, paged_kv_cache)
        for wrapper in self._batch_prefill_wrappers[:-1]:
            out_i, lse_i = wrapper.run_return_lse(q, paged_kv_cache)
            out, lse = merged(torch.stack([out, out_i], dim=1), torch.stack([lse, lse_i], dim=1), base=2)
        self.run_count += 1
        return out

    forward = run

    def _check_counts(self, arrays: dict[str, Any]) -> None:
        """Whether there is one entry a level; the library learns it from zip(strict=True)."""
        for position, (name, array) in enumerate(arrays.items(), start=2):
            got = len(array) if isinstance(array, list | tuple) else 0
            if got != self._num_levels:
                which = "shorter" if got < self._num_levels else "longer"
                before = "argument 1" if position == 2 else f"arguments 1-{position - 1}"
                message = f"zip() argument {position} is {which} than {before}"
                params = {"got": got, "expected": self._num_levels, "message": message}
                settle([Finding(LEVELS_COUNT, name, params)], "fa2", during="plan")


def _row_findings(qo_indptr_arr: list[torch.Tensor]) -> Iterator[Finding]:
    """Whether all levels plan the same rows."""
    if not all(isinstance(t, torch.Tensor) and t.ndim == 1 and t.numel() for t in qo_indptr_arr):
        return  # the plan of that level says what is wrong with it
    rows = [int(tensor[-1]) for tensor in qo_indptr_arr]
    for level, value in enumerate(rows):
        if value != rows[-1]:
            params = {"level": level, "value": value, "expected": rows[-1]}
            yield Finding(LEVEL_ROWS, f"qo_indptr_arr[{level}]", params)


__all__ = ["MultiLevelCascadeAttentionWrapper"]
