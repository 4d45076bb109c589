"""What can be wrong with KV that lies without pages: ragged batches, and q, k, v of a single request."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fake_kernels import mistakes_indptr as mi
from fake_kernels import mistakes_rows as mr
from fake_kernels import mistakes_wrappers as m
from fake_kernels.checks_paged import check_heads, first_decrease
from fake_kernels.findings import Finding
from fake_kernels.memory import goes_on
from fake_kernels.mistakes_calls import LAST_DIM_STRIDE
from fake_kernels.outcomes import DIVISION_BY_ZERO, GARBAGE, HARMLESS, UNMEASURED, Path, raises
from fake_kernels.reference import Layout


def check_tensors(**given: object) -> Iterator[Finding]:
    """Whether these are tensors at all."""
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor):
            kind = type(tensor).__name__
            yield Finding(m.NOT_A_TENSOR, name, {"type": kind})


def check_vectors(**arrays: object) -> Iterator[Finding]:
    """Whether these are one-dimensional tensors at all; the other checks rely on it."""
    for name, tensor in arrays.items():
        if not isinstance(tensor, torch.Tensor):
            kind = type(tensor).__name__
            message = f"'{kind}' object has no attribute 'to'"
            yield Finding(mi.NOT_A_TENSOR, name, {"type": kind}, raises(AttributeError, message))
        elif tensor.ndim != 1:
            yield Finding(mi.NOT_A_VECTOR, name, {"shape": list(tensor.shape)})


def check_ragged(qo_indptr: torch.Tensor, kv_indptr: torch.Tensor) -> Iterator[Finding]:
    """Everything wrong with the two running sums of a ragged batch, int32 [B + 1] in tokens."""
    for name, tensor, mistake in (
        ("qo_indptr", qo_indptr, mi.QO_INDPTR_NOT_INT32),
        ("kv_indptr", kv_indptr, mi.KV_INDPTR_NOT_INT32),
    ):
        if tensor.dtype != torch.int32:
            params = {"dtype": str(tensor.dtype).removeprefix("torch.")}
            yield Finding(mistake, name, params, UNMEASURED)
        if tensor.numel() > 1 and tensor.stride(0) != 1:
            yield Finding(mi.NOT_CONTIGUOUS, name, {"stride": tensor.stride(0)})
    if len(qo_indptr) < 2:
        yield Finding(mi.EMPTY_BATCH, "qo_indptr")
        return
    if len(kv_indptr) != len(qo_indptr):
        yield Finding(m.RAGGED_COUNT, "kv_indptr", {"got": len(kv_indptr), "expected": len(qo_indptr)})
        return
    rows, lengths = qo_indptr.tolist(), kv_indptr.tolist()
    decrease = first_decrease(rows)
    if decrease is not None:
        params = decrease | {"position": decrease["next"], "value": decrease["after"]}
        yield Finding(mi.QO_INDPTR_DECREASING, "qo_indptr", params)
    if rows[0] != 0:
        sizes = {"got": len(rows), "expected": len(rows), "batch": len(rows) - 1}
        start = {"position": 0, "value": rows[0]}
        yield Finding(mi.QO_INDPTR_NO_LEADING_ZERO, "qo_indptr", start | sizes)
    decrease = first_decrease(lengths)
    if decrease is not None:
        params = decrease | {"position": decrease["next"], "value": decrease["after"]}
        params |= {"previous": decrease["next"] - 1, "length": decrease["after"] - decrease["before"]}
        yield Finding(m.RAGGED_DECREASING, "kv_indptr", params)
    if lengths[0] != 0:
        yield Finding(m.RAGGED_START, "kv_indptr", {"position": 0, "value": lengths[0]})


def check_kv_rows(
    rows: int, qo_heads: int, path: Path, *, reads_on: bool, **kv: torch.Tensor
) -> Iterator[Finding]:
    """Whether k and v, [rows, heads, ...], end where kv_indptr does. reads_on: the kernel looks for more rows behind them."""
    for name, tensor in kv.items():
        if tensor.shape[0] == rows:
            continue
        outcome = GARBAGE if tensor.shape[0] < rows else UNMEASURED
        if tensor.shape[0] < rows and reads_on and len(goes_on(tensor, rows)) == rows:
            outcome = HARMLESS
        if path == "fa3" and tensor.shape[1] > qo_heads:
            outcome = DIVISION_BY_ZERO
        yield Finding(m.RAGGED_KV_ROWS, name, {"got": tensor.shape[0], "expected": rows}, outcome)


def check_layout(layout: str, path: Path) -> Iterator[Finding]:
    """Whether the kernel of `path` can read K and V without pages in this layout (batch_prefill_sm90.cu,
    single_prefill_sm90.cu)."""
    if layout == "HND" and path == "fa3":
        yield Finding(m.HND_ON_FA3, "kv_layout", {"value": layout})


def check_dense(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: Layout, path: Path
) -> Iterator[Finding]:
    """Whether q [rows, heads, head_dim] and K and V of one request belong together. K and V are 3-D in
    `layout`: tokens and KV heads alike in both, head_dim of K that of q."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.ndim != 3:
            yield Finding(m.LAYOUT_SHAPE, name, {"shape": list(tensor.shape), "expected": "3-D"})
            return
    if v.shape[:2] != k.shape[:2]:
        expected = str([*k.shape[:2], v.shape[2]])
        yield Finding(m.LAYOUT_SHAPE, "v", {"shape": list(v.shape), "expected": expected})
    if k.shape[2] != q.shape[2]:
        expected = str([*k.shape[:2], q.shape[2]])
        yield Finding(m.LAYOUT_SHAPE, "k", {"shape": list(k.shape), "expected": expected})
    if path in ("dec", "tc") and v.shape[2] != k.shape[2]:
        yield Finding(m.LAYOUT_SHAPE, "v", {"shape": list(v.shape), "expected": str(list(k.shape))})
    for name, tensor in (("k", k), ("v", v)):
        if tensor.dtype != q.dtype:
            yield Finding(m.KV_DTYPE, name, {"value": str(tensor.dtype), "planned": str(q.dtype)})
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if path == "dec" and not tensor.is_contiguous():
            told = raises(RuntimeError, f"{name} must be contiguous", "run")  # single_decode.cu
            yield Finding(mr.NOT_CONTIGUOUS, name, {"stride": list(tensor.stride())}, told)
        elif tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
            yield Finding(LAST_DIM_STRIDE, name, {"tensor": name, "stride": tensor.stride(-1)})
    yield from check_heads(q.shape[1], k.shape[1 if layout == "NHD" else 0], path)
