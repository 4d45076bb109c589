"""`workspace_size` of the paged wrappers: the bytes that a plan of a batch would need, asked before the buffers exist.

Interface of flashinfer 0.7.2.post1 (`flashinfer/decode.py`, `flashinfer/prefill.py`). The batch is planned on a copy of the
wrapper, so that it is checked as plan checks it and nothing of the wrapper or of its buffers changes.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from fake_kernels import schedule
from fake_kernels.errors import kernel_error, not_modelled

_PLENTY = 1 << 50


class DecodeWorkspaceSize:
    """`workspace_size` of the decode wrapper."""

    def workspace_size(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        pos_encoding_mode: str = "NONE",
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        q_data_type: str | torch.dtype | None = "float16",
        kv_data_type: str | torch.dtype | None = None,
        o_data_type: str | torch.dtype | None = None,
        data_type: str | torch.dtype | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        block_tables: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        q_len_per_req: int = 1,
    ) -> tuple[int, int]:
        """Bytes of float and int workspace that `plan` of the same arguments needs.

        Errors as `plan`. `not_modelled` where the blocks per SM of the kernel were not measured.
        """
        return _needed(self, {name: value for name, value in locals().items() if name != "self"})


class PrefillWorkspaceSize:
    """`workspace_size` of the paged prefill wrapper."""

    def workspace_size(
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
    ) -> tuple[int, int]:
        """Bytes of float and int workspace that `plan` of the same arguments needs; fa2 only, as in the library.

        Errors as `plan`. NotImplementedError on fa3.
        """
        return _needed(self, {name: value for name, value in locals().items() if name != "self"})


def _needed(wrapper: Any, arguments: dict[str, Any]) -> tuple[int, int]:
    trial = copy.copy(wrapper)
    trial._plan = None
    trial._float_workspace_buffer = torch.empty(_PLENTY, dtype=torch.uint8, device="meta")
    trial._int_workspace_buffer = torch.empty(_PLENTY, dtype=torch.uint8, device="meta")
    trial._pin_memory_int_workspace_buffer = torch.empty(_PLENTY, dtype=torch.uint8, device="meta")
    if wrapper._graph_buffers is not None:
        trial._graph_buffers = {key: buffer.clone() for key, buffer in wrapper._graph_buffers.items()}
    trial.plan(**arguments)
    if trial._timetable is None:
        raise not_modelled("workspace_size", "for metadata that is wrong")
    batch, planner = trial._timetable.batch, trial._timetable.planner
    if planner == "fa3":
        raise kernel_error(
            "workspace_size_unavailable",
            argument="backend",
            params={"value": "fa3"},
            what={
                "en": "workspace_size is not available for prefill backend 'fa3'",
                "zh": "prefill 的 fa3 后端没有 workspace_size。",
            },
            real={
                "en": "raises NotImplementedError: workspace_size is not available for prefill backend 'fa3'",
                "zh": "抛出 NotImplementedError：workspace_size is not available for prefill backend 'fa3'",
            },
            fix={
                "en": "fa3 never splits KV and needs no float workspace; or ask a wrapper with backend='fa2'.",
                "zh": "fa3 从不切分 KV，不需要 float workspace；或者用 backend='fa2' 的 wrapper。",
            },
            raised=NotImplementedError,
        )
    layout = schedule.workspaces(batch, planner)
    if layout is None:
        reason = schedule.describe(batch, planner).unknown
        raise not_modelled("workspace_size", f"{reason}")
    return layout.used("float"), layout.used("int")
