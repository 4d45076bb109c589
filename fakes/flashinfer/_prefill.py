"""What prefill has in common over paged and over ragged KV: the backend, rows of q, buffers and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels.checks_values import check_tensors
from fake_kernels.findings import Finding, settle
from fake_kernels.outcomes import Path, raises

from flashinfer._jit import JitVariant
from flashinfer._options import only_default, path_of, pick_backend, refuse_option
from flashinfer._plan import Plan
from flashinfer._wrapper import AttentionWrapper


class PrefillWrapper(AttentionWrapper):
    """Base of the prefill wrappers. Not part of the real package's interface.

    Invariant: `_max_total_num_rows` is None until the first plan under CUDA graphs, and stays from then on.
    """

    _default_path = "fa2"
    _kind = "paged"

    def _start_prefill(
        self,
        jit_args: list[Any] | None,
        jit_kwargs: dict[str, Any] | None,
        variant_owns_mask: bool,
    ) -> None:
        self._max_total_num_rows: int | None = None
        if jit_args is None:
            only_default(jit_kwargs=(jit_kwargs, None))
        if variant_owns_mask and self._backend != "fa2":
            message = "variant_owns_mask is only supported on the fa2 backend"
            with_fa2 = {"en": 'with backend="fa2"', "zh": '与 backend="fa2" 一起用'}
            refuse_option("variant_owns_mask", True, with_fa2, ValueError, message, "fa2")
        if variant_owns_mask and jit_args is None:
            message = "variant_owns_mask requires a custom JIT module (jit_args)"
            refuse_option(
                "variant_owns_mask",
                True,
                {"en": "with jit_args", "zh": "与 jit_args 一起用"},
                ValueError,
                message,
                "fa2",
            )
        self._variant_owns_mask = variant_owns_mask
        if jit_args is not None:
            if self._backend == "auto":
                message = f"Invalid backend: {self._backend}"
                refuse_option("backend", self._backend, "fa2, fa3", ValueError, message, "fa2")
            self._jit = JitVariant(jit_args, jit_kwargs)

    def _keep_graph_buffers(
        self,
        kept: dict[str, torch.Tensor],
        custom_mask_buf: torch.Tensor | None,
        mask_indptr_buf: torch.Tensor | None,
    ) -> None:
        """Work in these buffers from now on; those of the mask are needed by batches with one only."""
        of_mask = {"custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf}
        given = {name: buffer for name, buffer in of_mask.items() if buffer is not None}
        settle(check_tensors("dtype", **given), self._default_path, during="plan")
        types = {"custom_mask_buf": torch.uint8, "mask_indptr_buf": torch.int32}
        self._check_graph_buffers({name: (buffer, types[name]) for name, buffer in given.items()})
        for key, buffer in (("mask", custom_mask_buf), ("mask_indptr", mask_indptr_buf)):
            if buffer is not None:
                kept[key] = buffer
        self._graph_buffers = kept

    def _backend_for(
        self, q_dtype: torch.dtype, head_dim_qk: int, head_dim_vo: int, *, mask: bool, positions: str
    ) -> str:
        """The backend of this plan: as asked for, or what "auto" becomes."""
        if self._backend != "auto":
            return self._backend
        return pick_backend(q_dtype, head_dim_qk, head_dim_vo, mask=mask, positions=positions)

    def _path(self) -> Path:
        return path_of(self._backend)

    def _row_findings(self, plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
        if q.shape[0] == plan.rows:
            return
        outcome = raises(
            ValueError,
            f"q.shape[0] ({q.shape[0]}) does not match qo_indptr[-1] ({plan.rows}). For {self._kind} prefill, "
            "q must have shape [total_tokens, num_heads, head_dim] where total_tokens = qo_indptr[-1].",
            "run",
        )
        yield Finding(m.Q_ROWS, "q", {"value": q.shape[0], "planned": plan.rows}, outcome)

    def _check_graph_rows(self, qo_indptr: torch.Tensor, fixed_batch: str) -> None:
        """Whether a batch fits what CUDA graphs fixed; `fixed_batch` is the library's sentence about the
        number of requests."""
        rows, batch = int(qo_indptr[-1]), len(qo_indptr) - 1
        if self._max_total_num_rows is not None and rows > self._max_total_num_rows:
            self._graph_error(
                "qo_indptr",
                f"The total number of rows in qo_indptr {rows} in cuda graph mode cannot exceed the number of "
                f"rows set during initialization {self._max_total_num_rows}.",
            )
        if batch != self._fixed_batch_size:
            self._graph_error("qo_indptr", fixed_batch.format(batch, self._fixed_batch_size))

    def _check_lse_form(self, lse_base: str, lse_layout: str) -> None:
        for name, value, allowed in (
            ("lse_base", lse_base, ("log2", "ln")),
            ("lse_layout", lse_layout, ("NH", "HN")),
        ):
            if value not in allowed:
                message = f"{name} must be one of {allowed}, got {value!r}"
                refuse_option(name, value, ", ".join(allowed), ValueError, message, self._path())
