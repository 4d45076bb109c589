"""What can be wrong with the arguments of flash_attn_varlen_func: the findings, causes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from fake_kernels import mistakes_flash as m
from fake_kernels.checks_flash import BATCH_SIZES, check_longest_q, check_sums
from fake_kernels.findings import Finding
from fake_kernels.memory import longer
from fake_kernels.outcomes import UNMEASURED
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
        other_batch = len(self.cu_seqlens_k) != len(self.cu_seqlens_q)
        for name, sums, end, mistake in (
            ("cu_seqlens_q", self.cu_seqlens_q, self.q.shape[0], m.CU_SEQLENS_Q_SHAPE),
            ("cu_seqlens_k", self.cu_seqlens_k, self.k.shape[0], m.CU_SEQLENS_K_SHAPE),
        ):
            of_k = name == "cu_seqlens_k"
            noticed = BATCH_SIZES if other_batch else None
            yield from check_sums(name, sums, end, mistake, noticed=noticed, reads_on=of_k)
        if other_batch:
            expected = f"{len(self.cu_seqlens_q)} entries"
            params = {"got": list(self.cu_seqlens_k.shape), "expected": expected}
            yield Finding(m.SHAPE, "cu_seqlens_k", params, BATCH_SIZES)
        rows, lengths = (
            [b - a for a, b in pairwise(s.tolist())] for s in (self.cu_seqlens_q, self.cu_seqlens_k)
        )
        yield from check_longest_q(rows, self.max_seqlen_q, self.q.shape[1] // max(1, self.k.shape[1]))
        if max(lengths) > self.max_seqlen_k:
            params = {
                "value": self.max_seqlen_k,
                "request": lengths.index(max(lengths)),
                "needed": max(lengths),
            }
            yield Finding(m.MAX_SEQLEN_K_TOO_SMALL, "max_seqlen_k", params)

    def requests(self) -> list[Request]:
        """Rows and KV of every request."""
        rows, lengths = self.cu_seqlens_q.tolist(), self.cu_seqlens_k.tolist()
        return [
            Request(*of_q, torch.arange(start, max(start, stop)))
            for of_q, (start, stop) in zip(pairwise(rows), pairwise(lengths), strict=True)
        ]

    def caches(self) -> tuple[torch.Tensor, torch.Tensor]:
        """K and V as far as cu_seqlens_k reaches; zeros where there are no rows."""
        rows = int(self.cu_seqlens_k.max())
        if rows <= self.k.shape[0]:
            return self.k, self.v
        return longer(self.k, rows, reads_on=False), longer(self.v, rows, reads_on=False)

    def _types(self) -> Iterator[Finding]:
        for name, sums in (("cu_seqlens_q", self.cu_seqlens_q), ("cu_seqlens_k", self.cu_seqlens_k)):
            if sums.dtype != torch.int32:
                dtype = str(sums.dtype).removeprefix("torch.")
                params = {"dtype": dtype, "real_name": name, "real_dtype": "torch.int32"}
                yield Finding(m.NOT_INT32, name, params)
            if sums.numel() > 1 and sums.stride(0) != 1:
                yield Finding(m.NOT_CONTIGUOUS, name, {"stride": list(sums.stride())}, UNMEASURED)
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
                yield Finding(m.LAST_DIM_STRIDE_VARLEN, name, {"value": tensor.stride(-1)})
        heads, kv_heads = self.q.shape[1], self.k.shape[1]
        if kv_heads < 1 or heads % kv_heads:
            yield Finding(m.HEADS, "q", {"value": heads, "kv": kv_heads})
        if self.k.shape[2] != self.q.shape[2]:
            expected = f"head_dim {self.q.shape[2]}"
            yield Finding(m.SHAPE, "k", {"got": list(self.k.shape), "expected": expected})
        if self.v.shape[:2] != self.k.shape[:2]:
            expected = str([*self.k.shape[:2], self.v.shape[2]])
            yield Finding(m.SHAPE, "v", {"got": list(self.v.shape), "expected": expected})
