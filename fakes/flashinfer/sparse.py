"""Attention under a mask made of blocks: equal ones (BSR) here, variable ones in `_variable_sparse`.

Interface of flashinfer 0.7.2.post1 (`flashinfer/sparse.py`, backends fa2, fa3 and CUDA-core decode), computed
on the CPU. As there, a block row becomes a request and its blocks become its pages: the KV that a row sees is
gathered, and causal counts in what is gathered, not in the columns of the mask.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from fake_kernels.checks_blocks import Blocks, check_planned_shapes
from fake_kernels.checks_masks import MaskOf
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.memory import longer
from fake_kernels.mistakes_blocks import BLOCK_O_DTYPE
from fake_kernels.outcomes import Path

from flashinfer._options import (
    canonical_dtype,
    check_positions,
    only_default,
    path_of,
    pick_backend,
    planned_dtypes,
    refuse_option,
    require_numbers,
)
from flashinfer._plan import Plan
from flashinfer._sparse import SparseWrapper
from flashinfer._variable_sparse import VariableBlockSparseAttentionWrapper


class BlockSparseAttentionWrapper(SparseWrapper):
    """One mask for all heads, in blocks of R x C: `plan` once, `run` for every layer.

    float_workspace_buffer: uint8 [bytes], 16-byte aligned. backend "auto" is what the library picks on an
    H200 and stays as picked by the first plan that needs tensor cores.
    """

    def __init__(self, float_workspace_buffer: torch.Tensor, backend: str = "auto") -> None:
        require_context()
        self._start(float_workspace_buffer, "NHD", backend, False)
        self.R: int | None = None
        self.C: int | None = None
        self.M: int | None = None
        self.N: int | None = None

    def plan(
        self,
        indptr: torch.Tensor | None,
        indices: torch.Tensor | None,
        M: int,
        N: int,
        R: int,
        C: int,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        mask: torch.Tensor | None = None,
        packed_mask: torch.Tensor | None = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: str | torch.dtype = "float16",
        kv_data_type: str | torch.dtype | None = None,
        o_data_type: str | torch.dtype = "float16",
        non_blocking: bool = True,
        block_mask: torch.Tensor | None = None,
        kv_block_lens: torch.Tensor | None = None,
        q2k_indices: torch.Tensor | None = None,
        q2k_num: torch.Tensor | None = None,
        kv_splits: int | str | None = None,
        use_clc: bool | None = None,
        q_scale: torch.Tensor | None = None,
        k_scale: torch.Tensor | None = None,
        v_scale: torch.Tensor | None = None,
    ) -> None:
        """Plan a mask of M x N.

        indptr int32 [ceil(M / R) + 1]: running sum of the blocks of each block row, from 0. indices int32
        [indptr[-1]]: their block columns, 0..N / C - 1. mask bool [blocks, R, C]: what of each block is seen,
        everything if None. packed_mask: its bits in the kernel's order, for one block row.
        Note that q_data_type and o_data_type are float16 unless given. They must be equal, but for a bfloat16 output of a
        float16 q.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        self._check_other_backends(block_mask, kv_splits, use_clc, q_scale, k_scale, v_scale)
        if indptr is None or indices is None:
            message = "indptr and indices are required for non-VSA backends."
            refuse_option(
                "indptr", None, {"en": "int32 tensors", "zh": "int32 张量"}, ValueError, message, "fa2"
            )
        assert indptr is not None
        assert indices is not None
        only_default(
            use_fp16_qk_reduction=(use_fp16_qk_reduction, False),
            kv_block_lens=(kv_block_lens, None),
            q2k_indices=(q2k_indices, None),
            q2k_num=(q2k_num, None),
        )
        require_numbers(arguments, self._path(), during="plan")
        q_dtype, kv_dtype = planned_dtypes(q_data_type, kv_data_type, None, self._path())
        o_dtype = canonical_dtype("o_data_type", o_data_type, self._path())
        masked = mask is not None or packed_mask is not None
        group = max(1, num_qo_heads // max(1, num_kv_heads))
        path: Path = "dec"
        backend = self._backend
        if masked or R * group >= 4:
            if backend == "auto":
                dims = (head_dim, head_dim)
                backend = pick_backend(q_dtype, *dims, mask=masked, positions=pos_encoding_mode)
            path = path_of(backend)
        check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
        bits = mask if packed_mask is None else None
        blocks = Blocks(indptr, indices, M, N, R, C, bits, (num_kv_heads, head_dim))

        def findings() -> Iterator[Finding]:
            yield from blocks.findings(group, masked)
            if o_dtype != q_dtype and (q_dtype, o_dtype) != (torch.float16, torch.bfloat16):
                params = {"value": str(o_dtype), "planned": str(q_dtype)}
                yield Finding(BLOCK_O_DTYPE, "o_data_type", params)

        fault = settle(findings(), path, during="plan")
        count = len(indptr) - 1
        rows = [min(R, M - i * R) for i in range(count)]
        counts = indptr[1:] - indptr[:-1]
        qo_indptr = torch.tensor([min(i * R, M) for i in range(count + 1)], dtype=torch.int32)
        flat = blocks.flat_mask()
        if flat is not None and fault is not None:  # what lies behind a mask that is too small: zeros
            needed = sum(r * c for r, c in zip(rows, (counts * C).tolist(), strict=True))
            flat = torch.cat([flat, flat.new_zeros(max(0, needed - len(flat)))])
        given = MaskOf(flat, packed_mask, rows, (counts * C).tolist(), ("mask", "packed_mask"))
        plan = self._make_plan(
            {
                "indptr": ("indptr", indptr),
                "indices": ("indices", indices),
                "last": ("", counts.clamp(max=1) * C),
                "qo": ("", qo_indptr),
            },
            (),
            path,
            batch=count,
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            head_dim_vo=head_dim,
            page_size=C,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            non_blocking=non_blocking,
            mask=given,
            cache_names=("k", "v"),
        )
        plan.fault = plan.fault or fault
        self._o_dtype = o_dtype
        self._backend, self._taken = backend, path
        self._use_tensor_cores = path != "dec"
        self.M, self.N, self.R, self.C = M, N, R, C
        self._keep(plan, arguments)
        self._keep_scoring(
            causal=causal,
            window_left=-1,
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
        scale_q: torch.Tensor | None = None,
        scale_k: torch.Tensor | None = None,
        scale_v: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Attention of one layer: out [M, num_qo_heads, head_dim] of q's type, with return_lse also the LSE
        in base 2, float32 [M, num_qo_heads].

        q: [M, num_qo_heads, head_dim]. k, v: [N, num_kv_heads, head_dim]. Block rows without blocks are 0 with
        LSE -inf. enable_pdl changes no number.
        """
        require_context()
        require_numbers({"return_lse": return_lse}, self._path(), during="run")
        only_default(scale_q=(scale_q, None), scale_k=(scale_k, None), scale_v=(scale_v, None))
        plan = self._planned(self._path())
        wide = [self.N, plan.num_kv_heads, plan.head_dim]
        shapes = check_planned_shapes(
            q=(q, [self.M, plan.num_qo_heads, plan.head_dim]), k=(k, wide), v=(v, wide)
        )
        settle(shapes, self._path(), during="run")
        pages = (-1, plan.page_size, plan.num_kv_heads, plan.head_dim)
        if plan.fault is not None:  # blocks behind the last one
            k, v = (longer(tensor, self._reach(plan), reads_on=True) for tensor in (k, v))
        with_lse = return_lse or lse is not None
        result, natural = self._launch(q, k.reshape(pages), v.reshape(pages), with_lse=with_lse)
        return self._results(result.to(self._o_dtype), natural, out, lse, asked=return_lse)

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        scale_q: torch.Tensor | None = None,
        scale_k: torch.Tensor | None = None,
        scale_v: torch.Tensor | None = None,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Deprecated: like `run`, but its own options replace those of the plan."""
        self._forward_options(
            pos_encoding_mode, use_fp16_qk_reduction, logits_soft_cap, sm_scale, rope_scale, rope_theta
        )
        return self.run(q, k, v, scale_q, scale_k, scale_v)

    def _reach(self, plan: Plan) -> int:
        """Columns up to the end of the last block that is asked for."""
        indices = plan.arrays["indices"]
        return max(self.N or 0, (int(indices.max()) + 1) * plan.page_size) if len(indices) else self.N or 0

    def _check_other_backends(self, block_mask: torch.Tensor | None, *options: object) -> None:
        """Options of backends for other GPUs, which the library refuses on these."""
        if any(option is not None for option in options):
            message = (
                "kv_splits/use_clc/q_scale/k_scale/v_scale are only supported for backend='vsa_sm100_blk64', "
                f"got backend={self._backend!r}"
            )
            refuse_option("kv_splits", "given", "None", ValueError, message, "fa2")
        if block_mask is not None:
            message = "block_mask is only supported for the vsa_sm100_blk128"
            refuse_option("block_mask", "given", "None", ValueError, message, "fa2")


__all__ = ["BlockSparseAttentionWrapper", "VariableBlockSparseAttentionWrapper"]
