"""Attention under a mask of blocks of any size, another one for each KV head.

Interface of flashinfer 0.7.2.post1 (`flashinfer/sparse.py`, backends fa2 and fa3), computed on the CPU. As there,
every (KV head, block row) becomes a request over pages of one token, the KV of all heads one behind the other.
"""

from __future__ import annotations

import torch
from fake_kernels.checks_blocks import VariableBlocks, check_planned_shapes
from fake_kernels.errors import not_modelled
from fake_kernels.findings import require_context, settle

from flashinfer._options import (
    check_positions,
    only_default,
    path_of,
    pick_backend,
    planned_dtypes,
    refuse_option,
    require_numbers,
)
from flashinfer._sparse import SparseWrapper


class VariableBlockSparseAttentionWrapper(SparseWrapper):
    """A mask for each KV head, in blocks of any size: `plan` once, `run` for every layer.

    float_workspace_buffer: uint8 [bytes], 16-byte aligned. backend "auto" is what the library picks on an
    H200 and stays as picked by the first plan.
    """

    def __init__(self, float_workspace_buffer: torch.Tensor, backend: str = "auto") -> None:
        require_context()
        self._start(float_workspace_buffer, "NHD", backend, False)

    def plan(
        self,
        block_mask_map: torch.Tensor,
        block_row_sz: torch.Tensor,
        block_col_sz: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        non_blocking: bool = True,
        q_data_type: str | torch.dtype = "float16",
        kv_data_type: str | torch.dtype | None = None,
    ) -> None:
        """Plan masks: block_mask_map bool [num_kv_heads, block rows, block columns], block_row_sz int32
        [num_kv_heads, block rows] and block_col_sz int32 [num_kv_heads, block columns] in tokens. The sizes
        add up to the same number of rows, and of columns, on every head.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        require_numbers(arguments, self._path(), during="plan")
        q_dtype, kv_dtype = planned_dtypes(q_data_type, kv_data_type, None, self._path())
        only_default(use_fp16_qk_reduction=(use_fp16_qk_reduction, False))
        backend = self._backend
        if backend == "auto":
            dims = (head_dim, head_dim)
            backend = pick_backend(q_dtype, *dims, mask=False, positions=pos_encoding_mode)
        path = path_of(backend)
        # The library passes no slopes here, and an empty map ends in an IndexError of its own.
        only_default(pos_encoding_mode=(pos_encoding_mode, "NONE"))
        check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
        blocks = VariableBlocks(block_mask_map, block_row_sz, block_col_sz, num_kv_heads)
        settle(blocks.findings(), path, during="plan")
        if not bool(block_mask_map.any()):
            raise not_modelled("block_mask_map", "a map without blocks")
        if num_kv_heads < 1 or num_qo_heads % num_kv_heads:
            message = "num_qo_heads must be a multiple of num_kv_heads"
            multiples = {"en": f"multiples of {num_kv_heads}", "zh": f"{num_kv_heads} 的倍数"}
            refuse_option("num_qo_heads", num_qo_heads, multiples, AssertionError, message, path)
        kv_indptr, indices = blocks.columns()
        rows = block_row_sz.flatten().cumsum(0, dtype=torch.int32)
        lengths = kv_indptr[1:] - kv_indptr[:-1]
        plan = self._make_plan(
            {
                "indptr": ("", kv_indptr),
                "indices": ("", indices),
                "last": ("", lengths.clamp(max=1)),
                "qo": ("", torch.cat([rows.new_zeros(1), rows])),
            },
            (),
            path,
            batch=len(lengths),
            num_qo_heads=num_qo_heads // num_kv_heads,
            num_kv_heads=1,
            head_dim=head_dim,
            head_dim_vo=head_dim,
            page_size=1,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            non_blocking=non_blocking,
            cache_names=("k", "v"),
        )
        self._backend, self._taken = backend, path
        self._num_kv_heads = num_kv_heads
        self._gqa_group_size = num_qo_heads // num_kv_heads
        self._rows = int(block_row_sz[0].sum())
        self._columns = int(block_col_sz[0].sum())
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

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Attention of one layer: out [num_qo_heads, rows, head_dim] of q's type, with return_lse also the
        LSE in base 2, float32 [num_qo_heads, rows].

        q: [num_qo_heads, rows, head_dim]. k, v: [num_kv_heads, columns, head_dim]. out= and lse= are as the
        kernel writes them, [num_kv_heads * rows, group, head_dim] and without head_dim (sparse.py, run).
        """
        require_context()
        require_numbers({"return_lse": return_lse}, self._path(), during="run")
        plan = self._planned(self._path())
        heads, group, dim = self._num_kv_heads, self._gqa_group_size, plan.head_dim
        wide = [heads, self._columns, dim]
        shapes = check_planned_shapes(q=(q, [heads * group, self._rows, dim]), k=(k, wide), v=(v, wide))
        settle(shapes, self._path(), during="run")
        rows = q.reshape(heads, group, self._rows, dim).transpose(1, 2).reshape(-1, group, dim)
        with_lse = return_lse or lse is not None
        result, natural = self._launch(
            rows, k.reshape(-1, 1, 1, dim), v.reshape(-1, 1, 1, dim), with_lse=with_lse
        )
        told = self._results(result, natural, out, lse, asked=return_lse)
        if isinstance(told, tuple):
            return self._by_head(told[0]), self._by_head(told[1])
        return self._by_head(told)

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
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
        return self.run(q, k, v)

    def _by_head(self, tensor: torch.Tensor) -> torch.Tensor:
        """[kv heads * rows, group, ...] as [kv heads * group, rows, ...]."""
        apart = tensor.view(self._num_kv_heads, self._rows, *tensor.shape[1:])
        return apart.transpose(1, 2).flatten(0, 1).contiguous()


__all__ = ["VariableBlockSparseAttentionWrapper"]
