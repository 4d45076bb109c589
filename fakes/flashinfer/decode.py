"""Batch decode over a paged KV cache: one new token for each request, plan once, run every layer.

Interface of flashinfer 0.7.2.post1 (`flashinfer/decode.py`), computed on the CPU.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_paged import PagedMetadata
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, require_context
from fake_kernels.outcomes import GARBAGE, HARMLESS, Path, raises

from flashinfer._fast_plan import fast_decode_plan, kernel_of
from flashinfer._jit import JitVariant
from flashinfer._options import (
    check_positions,
    only_default,
    planned_dtypes,
    refuse_option,
    require_numbers,
)
from flashinfer._paged import PagedWrapper, require_window
from flashinfer._plan import Plan
from flashinfer._single import single_decode_with_kv_cache
from flashinfer._workspace_size import DecodeWorkspaceSize

_POSITIONAL_AFTER_PAGE_SIZE = (
    "pos_encoding_mode",
    "window_left",
    "logits_soft_cap",
    "q_data_type",
    "kv_data_type",
    "o_data_type",
    "data_type",
    "sm_scale",
    "rope_scale",
    "rope_theta",
    "non_blocking",
    "block_tables",
    "seq_lens",
    "fixed_split_size",
    "disable_split_kv",
    "q_len_per_req",
)


class BatchDecodeWithPagedKVCacheWrapper(DecodeWorkspaceSize, PagedWrapper):
    """Decode attention of a batch: `plan` once, `run` for every layer.

    float_workspace_buffer: uint8 [bytes], 16-byte aligned. kv_layout: "NHD" or "HND".
    use_tensor_cores chooses the kernel (`tc` or `dec`); refusals and faithful garbage depend on it, right
    results don't. With use_cuda_graph the three buffers (int32 [B+1], [most pages], [B]) are required.
    """

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
        paged_kv_indptr_buffer: torch.Tensor | None = None,
        paged_kv_indices_buffer: torch.Tensor | None = None,
        paged_kv_last_page_len_buffer: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: list[Any] | None = None,
    ) -> None:
        require_context()
        flags = {"use_cuda_graph": use_cuda_graph, "use_tensor_cores": use_tensor_cores}
        require_numbers(flags, self._default_path, during="plan")
        self._start(float_workspace_buffer, kv_layout, backend, use_cuda_graph)
        self._use_tensor_cores = use_tensor_cores
        self._chosen: dict[str, Any] | None = None  # what `plan` chose its kernel by
        if jit_args is not None:
            self._jit = JitVariant(jit_args, None)
        if use_cuda_graph:
            kept = self._graph_buffers_of(
                "{} should be a torch.Tensor in cudagraph mode",
                indptr=("paged_kv_indptr_buffer", paged_kv_indptr_buffer),
                indices=("paged_kv_indices_buffer", paged_kv_indices_buffer),
                last=("paged_kv_last_page_len_buffer", paged_kv_last_page_len_buffer),
            )
            self._fixed_batch_size = len(kept["last"])
            if len(kept["indptr"]) != self._fixed_batch_size + 1:
                self._graph_error(
                    "paged_kv_indptr_buffer", "The size of paged_kv_indptr_buffer should be batch_size + 1"
                )
            self._graph_buffers = kept

    @property
    def use_tensor_cores(self) -> bool:
        """Whether the tensor-core kernel is used."""
        return self._use_tensor_cores

    def plan(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        *deprecated_positional_args: Any,
        **kwargs: Any,
    ) -> None:
        """Plan a batch of B requests for all layers.

        indptr int32 [B+1]: running sum of pages, from 0. indices int32 [>= indptr[-1]]: page numbers.
        last_page_len int32 [B]: tokens in each last page, 1..page_size (0 without pages).
        Options by keyword: see `_plan_impl`. Note that q_data_type is float16 unless given.
        """
        if deprecated_positional_args:
            if len(deprecated_positional_args) > len(_POSITIONAL_AFTER_PAGE_SIZE):
                raise TypeError(
                    "BatchDecodeWithPagedKVCacheWrapper.plan() takes at most "
                    f"{len(_POSITIONAL_AFTER_PAGE_SIZE)} positional arguments after page_size, got "
                    f"{len(deprecated_positional_args)}"
                )
            named = zip(_POSITIONAL_AFTER_PAGE_SIZE, deprecated_positional_args, strict=False)
            for name, value in named:
                if name in kwargs:
                    raise TypeError(
                        f"BatchDecodeWithPagedKVCacheWrapper.plan() got multiple values for argument {name!r}"
                    )
                kwargs[name] = value
            warnings.warn(
                "options of BatchDecodeWithPagedKVCacheWrapper.plan() after page_size are keywords; "
                "giving them by position is deprecated",
                DeprecationWarning,
                stacklevel=2,
            )
        self._plan_impl(
            indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, **kwargs
        )

    def _plan_impl(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        *,
        pos_encoding_mode: str = "NONE",
        window_left: int = -1,
        window_right: int = 0,
        logits_soft_cap: float | None = None,
        q_data_type: str | torch.dtype | None = "float16",
        kv_data_type: str | torch.dtype | None = None,
        o_data_type: str | torch.dtype | None = None,
        data_type: str | torch.dtype | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        non_blocking: bool = True,
        block_tables: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        q_len_per_req: int = 1,
        is_causal: bool | None = None,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        if data_type is not None:
            q_data_type = data_type if q_data_type is None else q_data_type
            kv_data_type = data_type if kv_data_type is None else kv_data_type
        require_numbers(arguments, self._path(), during="plan")
        q_dtype, kv_dtype = planned_dtypes(q_data_type, kv_data_type, o_data_type, self._path())
        check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, self._path())
        only_default(
            window_right=(window_right, 0),
            block_tables=(block_tables, None),
            q_len_per_req=(q_len_per_req, 1),
        )
        require_window(window_left)
        if is_causal is not None and is_causal:
            message = (
                f"backend={self._backend!r}: a decode wrapper takes its mask from q_len_per_req; is_causal=True "
                "with one token a request is not supported"
            )
            refuse_option("is_causal", is_causal, "None, False", NotImplementedError, message, self._path())
        if fixed_split_size is not None and not self._use_tensor_cores:
            message = "fixed_split_size is only supported by tensor core decode for now."
            refuse_option("fixed_split_size", fixed_split_size, "None", ValueError, message, "dec")
        meta = PagedMetadata(indptr, indices, last_page_len, page_size, seq_lens, copied=self._use_cuda_graph)
        self._check_vectors(meta, self._path())
        if self._use_cuda_graph:
            self._check_graph_batch(meta)
        plan = self._plan_pages(
            meta,
            self._path(),
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            head_dim_vo=head_dim,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            non_blocking=non_blocking,
        )
        if self._use_tensor_cores and self._backend == "auto":
            self._backend = "fa2"
        self._chosen = kernel_of(q_dtype, kv_dtype, head_dim, pos_encoding_mode, window_left, logits_soft_cap)
        self._keep(plan, arguments)
        self._keep_scoring(
            causal=False,
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
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        q_len_per_req: int | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        kv_cache_sf: torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Attention of one layer: out [B, num_qo_heads, head_dim] of q's type.

        q: [B, num_qo_heads, head_dim]. paged_kv_cache: see `flashinfer._cache.unpack_cache`.
        With return_lse also the LSE in base 2, float32 [B, num_qo_heads]; a request without pages gives
        0 and -inf. out= and lse= receive the results. args: the tensors and scalars of a JIT variant.
        sinks are for other backends and refused. enable_pdl is a hint and changes no number.
        """
        only_default(
            q_scale=(q_scale, None),
            k_scale=(k_scale, None),
            v_scale=(v_scale, None),
            skip_softmax_threshold_scale_factor=(skip_softmax_threshold_scale_factor, None),
            kv_cache_sf=(kv_cache_sf, None),
        )
        if q_len_per_req is not None:
            warnings.warn(
                "q_len_per_req belongs to plan(); giving it to run() is deprecated",
                DeprecationWarning,
                stacklevel=2,
            )
            only_default(q_len_per_req=(q_len_per_req, 1))
        require_numbers({"return_lse": return_lse}, self._path(), during="run")
        self._check_run_window(window_left)
        self._check_sinks(sinks, args)
        result, natural = self._launch_pages(
            q,
            paged_kv_cache,
            args=args,
            window_left=window_left,
            with_lse=return_lse or lse is not None,
        )
        return self._results(result, natural, out, lse, asked=return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(
        self,
        q: torch.Tensor,
        paged_kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        pos_encoding_mode: str = "NONE",
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Deprecated: like `run`, but its own options (and their defaults) replace those of the plan."""
        self._override(pos_encoding_mode, window_left, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        return self.run(q, paged_kv_cache, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale)

    def forward_return_lse(
        self,
        q: torch.Tensor,
        paged_kv_cache: torch.Tensor,
        pos_encoding_mode: str = "NONE",
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Deprecated: `forward` that also returns the LSE."""
        self._override(pos_encoding_mode, window_left, logits_soft_cap, sm_scale, rope_scale, rope_theta)
        return self.run(q, paged_kv_cache, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, return_lse=True)

    def _path(self) -> Path:
        if not self._use_tensor_cores:
            return "dec"
        if self._backend == "fa3":
            raise not_modelled("backend", "fa3 with use_tensor_cores=True")
        return "tc"

    def _row_findings(self, plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
        rows = q.shape[0]
        if rows == plan.batch:
            return
        per_request = rows // plan.batch
        outcome = GARBAGE
        if plan.path == "dec":
            if rows < plan.batch:
                outcome = HARMLESS
            elif per_request > 1:
                outcome = raises(
                    ValueError,
                    f"q implies q_len_per_req={per_request}, but the non-tensor-core decode kernel only "
                    "supports q_len_per_req=1.",
                    "run",
                )
        elif per_request != 1:
            outcome = raises(
                ValueError,
                f"q implies q_len_per_req={per_request} but plan() used 1; re-plan with the matching "
                "q_len_per_req.",
                "run",
            )
        yield Finding(m.Q_ROWS, "q", {"value": rows, "planned": plan.batch}, outcome)

    def _check_graph_batch(self, meta: PagedMetadata) -> None:
        assert self._graph_buffers is not None
        if meta.batch != self._fixed_batch_size:
            self._graph_error(
                "last_page_len",
                f"The batch size should be fixed in cudagraph mode, the runtime batch size {meta.batch}  "
                f"mismatches the batch size set during initialization {self._fixed_batch_size}",
            )
        if len(meta.indices) > len(self._graph_buffers["indices"]):
            self._graph_error(
                "indices", "The size of indices should be less than or equal to the allocated buffer"
            )


class CUDAGraphBatchDecodeWithPagedKVCacheWrapper(BatchDecodeWithPagedKVCacheWrapper):
    """Decode in buffers fixed at construction: the batch size is that of last_page_len_buffer for good."""

    def __init__(
        self,
        workspace_buffer: torch.Tensor,
        indptr_buffer: torch.Tensor,
        indices_buffer: torch.Tensor,
        last_page_len_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_tensor_cores: bool = False,
    ) -> None:
        super().__init__(
            workspace_buffer,
            kv_layout,
            use_cuda_graph=True,
            use_tensor_cores=use_tensor_cores,
            paged_kv_indptr_buffer=indptr_buffer,
            paged_kv_indices_buffer=indices_buffer,
            paged_kv_last_page_len_buffer=last_page_len_buffer,
        )


__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper",
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper",
    "fast_decode_plan",
    "single_decode_with_kv_cache",
]
