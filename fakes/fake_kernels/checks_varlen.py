"""What can be wrong with the arguments of flash_attn_varlen_func: the findings, causes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from fake_kernels import mistakes_flash as m
from fake_kernels.checks_flash import check_sums
from fake_kernels.findings import Finding
from fake_kernels.reference import Request

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True)
class VarlenCall:
    """One call, as the caller made it: q [total q, heads, head_dim], k and v [total k, kv_heads, head_dim],
    running sums int32 [B + 1] and the largest lengths."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    cu_seqlens_q: torch.Tensor
    cu_seqlens_k: torch.Tensor
    max_seqlen_q: int
    max_seqlen_k: int

    def findings(self) -> Iterator[Finding]:
        """Everything wrong with a call, most telling first. Nothing for a right one."""
        yield from self._types()
        yield from self._shapes()
        yield from check_sums("cu_seqlens_q", self.cu_seqlens_q, self.q.shape[0], m.CU_SEQLENS_Q_SHAPE)
        yield from check_sums("cu_seqlens_k", self.cu_seqlens_k, self.k.shape[0], m.CU_SEQLENS_K_SHAPE)
        if len(self.cu_seqlens_k) != len(self.cu_seqlens_q):
            expected = f"{len(self.cu_seqlens_q)} entries"
            yield Finding(
                m.SHAPE, "cu_seqlens_k", {"got": list(self.cu_seqlens_k.shape), "expected": expected}
            )
        for name, sums, value, mistake in (
            ("max_seqlen_q", self.cu_seqlens_q, self.max_seqlen_q, m.MAX_SEQLEN_Q_TOO_SMALL),
            ("max_seqlen_k", self.cu_seqlens_k, self.max_seqlen_k, m.MAX_SEQLEN_K_TOO_SMALL),
        ):
            lengths = [b - a for a, b in pairwise(sums.tolist())]
            if max(lengths) > value:
                request = lengths.index(max(lengths))
                params = {"value": value, "request": request, "needed": max(lengths)}
                yield Finding(mistake, name, params)

    def requests(self) -> list[Request]:
        """Rows and KV of every request."""
        rows, lengths = self.cu_seqlens_q.tolist(), self.cu_seqlens_k.tolist()
        return [
            Request(*of_q, torch.arange(*of_k))
            for of_q, of_k in zip(pairwise(rows), pairwise(lengths), strict=True)
        ]

    def _types(self) -> Iterator[Finding]:
        for name, sums in (("cu_seqlens_q", self.cu_seqlens_q), ("cu_seqlens_k", self.cu_seqlens_k)):
            if sums.dtype != torch.int32:
                dtype = str(sums.dtype).removeprefix("torch.")
                params = {"dtype": dtype, "real_name": name, "real_dtype": "torch.int32"}
                yield Finding(m.NOT_INT32, name, params)
            if sums.numel() > 1 and sums.stride(0) != 1:
                yield Finding(m.NOT_CONTIGUOUS, name, {"stride": list(sums.stride())})
        if self.q.dtype not in _DTYPES:
            yield Finding(m.DTYPE, "q", {"value": str(self.q.dtype)})
        for name, tensor in (("k", self.k), ("v", self.v)):
            if tensor.dtype != self.q.dtype:
                params = {"value": str(self.q.dtype), "other": str(tensor.dtype)}
                yield Finding(m.DTYPES_DIFFER, name, params)

    def _shapes(self) -> Iterator[Finding]:
        for name, tensor in (("q", self.q), ("k", self.k), ("v", self.v)):
            if tensor.ndim != 3:
                yield Finding(m.SHAPE, name, {"got": list(tensor.shape), "expected": "3-D"})
                return
            if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
                yield Finding(m.LAST_DIM_STRIDE, name, {"value": tensor.stride(-1)})
        heads, kv_heads = self.q.shape[1], self.k.shape[1]
        if kv_heads < 1 or heads % kv_heads:
            yield Finding(m.HEADS, "q", {"value": heads, "kv": kv_heads})
        if self.k.shape[2] != self.q.shape[2]:
            expected = f"head_dim {self.q.shape[2]}"
            yield Finding(m.SHAPE, "k", {"got": list(self.k.shape), "expected": expected})
        if self.v.shape[:2] != self.k.shape[:2]:
            expected = str([*self.k.shape[:2], self.v.shape[2]])
            yield Finding(m.SHAPE, "v", {"got": list(self.v.shape), "expected": expected})
