"""BatchAttention: prefill and decode requests of one batch in one persistent kernel.

Interface of flashinfer 0.7.2.post1 (`flashinfer/attention/_core.py`), computed on the CPU. Unlike the wrappers it takes
the lengths of the KV in tokens, owns its workspaces, always returns the LSE, and is bfloat16 unless told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels import mistakes_paged as mp
from fake_kernels import mistakes_persistent as ms
from fake_kernels.checks_paged import PagedMetadata, check_heads, check_pages, check_vectors
from fake_kernels.checks_persistent import check_batch, check_lengths
from fake_kernels.checks_values import check_tensors, check_written
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, act, require_context, settle
from fake_kernels.mistakes_indptr import NOT_A_TENSOR
from fake_kernels.outcomes import NAN, UNMEASURED, Outcome, raises
from fake_kernels.paged import as_read, token_slots
from fake_kernels.reference import Layout, Request, attend
from fake_kernels.schedule import Batch
from fake_kernels.variants import Variant

from flashinfer._cache import kv_heads_of, page_size_of, unpack_cache
from flashinfer._call_checks import check_dimensions, check_dtypes, check_shapes, check_strides
from flashinfer._options import DTYPES, canonical_dtype, only_default, refuse_option, require_numbers
from flashinfer._plan import kept_arguments
from flashinfer._schedule import Scheduled
from flashinfer._sink import BatchAttentionWithAttentionSinkWrapper

LN2 = math.log(2.0)

_FLOAT_WORKSPACE_BYTES = 384 * 1024 * 1024
_INT_WORKSPACE_BYTES = 8 * 1024 * 1024

_UNWRITTEN = 7.0
"""What rows hold that the kernel doesn't write: on a GPU whatever the memory held."""


@dataclass(frozen=True)
class _Planned:
    """One plan. `qo_indptr`, `kv_indptr` and `lengths` are copies; `indices` is the caller's tensor, read at run; `arrays`,
    which the wrappers' plans keep theirs in, is empty."""

    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    head_dim_vo: int
    page_size: int
    q_dtype: torch.dtype
    kv_dtype: torch.dtype
    qo_indptr: list[int]
    kv_indptr: list[int]
    lengths: list[int]
    indices: torch.Tensor
    causal: bool
    sm_scale: float | None
    soft_cap: float
    fault: Outcome | None
    path: str = "persistent"
    cache_names: tuple[str, str] = ("kv_cache", "kv_cache")
    arrays: dict[str, torch.Tensor] = field(default_factory=dict)

    def slots(self, request: int, num_pages: int, page_size: int) -> torch.Tensor:
        """Where the tokens of a request lie in a cache of these sizes: a token's page and its place in it go by the
        planned page size, a page's place in memory by the cache's."""
        told = (self.kv_indptr[request], self.lengths[request], self.indices, self.page_size, num_pages)
        found = token_slots(*told)
        if page_size == self.page_size:
            return found
        page, entry = found.div(self.page_size, rounding_mode="floor"), found % self.page_size
        return (page * page_size + entry).remainder(num_pages * page_size)

    def heads_of(self, cache: torch.Tensor, layout: Layout) -> torch.Tensor:
        """The planned KV heads of a cache; those that it doesn't have (a kernel reads on in its memory) go round."""
        heads = kv_heads_of(cache, layout)
        if heads == self.num_kv_heads:
            return cache
        return cache.index_select(
            2 if layout == "NHD" else 1, torch.arange(self.num_kv_heads).remainder(heads)
        )

    def unwritten(self) -> Iterator[tuple[int, int]]:
        """Rows of q, from and to, that the kernel doesn't write: requests of negative length or without one."""
        for i, (start, stop) in enumerate(pairwise(self.qo_indptr)):
            if i >= len(self.lengths) or self.lengths[i] < 0:
                yield start, stop


class BatchAttention(Scheduled):
    """Attention of a mixed batch: `plan` once, `run` for every layer. plan_count, run_count and last_plan as on the wrappers.

    kv_layout: "NHD" or "HND". device: where the real one allocates 384 MiB and 8 MiB of workspace; here they are of
    device "meta" (a size without memory), and everything else is where the caller's tensors are.
    """

    def __init__(self, kv_layout: str = "NHD", device: str = "cuda") -> None:
        require_context()
        if kv_layout not in ("NHD", "HND"):
            message = f"Invalid kv_layout {kv_layout}"
            refuse_option("kv_layout", kv_layout, "NHD, HND", KeyError, message, "persistent")
        self._kv_layout: Any = kv_layout
        self.float_workspace_buffer = torch.empty(_FLOAT_WORKSPACE_BYTES, dtype=torch.uint8, device="meta")
        self.int_workspace_buffer = torch.empty(_INT_WORKSPACE_BYTES, dtype=torch.uint8, device="meta")
        self.page_locked_int_workspace_buffer = torch.empty_like(self.int_workspace_buffer)
        self._planned: _Planned | None = None
        self.plan_count = 0
        self.run_count = 0
        self.last_plan: dict[str, Any] | None = None

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_len_arr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int,
        page_size: int,
        causal: bool = False,
        sm_scale: float | None = None,
        logits_soft_cap: float | None = None,
        q_data_type: torch.dtype = torch.bfloat16,
        kv_data_type: torch.dtype = torch.bfloat16,
        use_profiler: bool = False,
    ) -> None:
        """Plan a batch of B requests for all layers.

        qo_indptr int32 [B+1]: running sum of new tokens, from 0. kv_indptr int32 [B+1]: running sum of pages, from 0.
        kv_indices int32 [>= kv_indptr[-1]]: page numbers, kept by reference and read at run. kv_len_arr int32 [B]: KV
        tokens of each request, those of this step included; its pages may have room for more.
        A logits_soft_cap must be given to run as well.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        require_context()
        require_numbers(arguments, "persistent", during="plan", required=("head_dim_vo",))
        cap = logits_soft_cap or 0.0
        if head_dim_qk > 256 or head_dim_vo > 256:
            message = (
                f"BatchAttention (holistic persistent kernel) does not support head_dim > 256 (got head_dim_qk="
                f"{head_dim_qk}, head_dim_vo={head_dim_vo}). Use BatchPrefillWithPagedKVCacheWrapper(backend='fa2') "
                "or BatchDecodeWithPagedKVCacheWrapper(use_tensor_cores=True) instead."
            )
            name, value = ("head_dim_qk", head_dim_qk) if head_dim_qk > 256 else ("head_dim_vo", head_dim_vo)
            refuse_option(
                name, value, {"en": "at most 256", "zh": "不超过 256"}, ValueError, message, "persistent"
            )
        only_default(use_profiler=(use_profiler, False), head_dim_vo=(head_dim_vo, head_dim_qk))
        q_dtype = canonical_dtype("q_data_type", q_data_type, "persistent")
        kv_dtype = canonical_dtype("kv_data_type", kv_data_type, "persistent")
        if q_dtype not in DTYPES:
            raise not_modelled("q_data_type", str(q_dtype))
        meta = PagedMetadata(
            kv_indptr,
            kv_indices,
            kv_len_arr,
            page_size,
            qo_indptr=qo_indptr,
            indptr_name="kv_indptr",
            indices_name="kv_indices",
            last_name="kv_len_arr",
        )
        if qo_indptr is None:
            missing = raises(AttributeError, "'NoneType' object has no attribute 'to'")
            settle(
                [Finding(NOT_A_TENSOR, "qo_indptr", {"type": "NoneType"}, missing)],
                "persistent",
                during="plan",
            )
        settle(check_vectors(meta), "persistent", during="plan")

        def findings() -> Iterator[Finding]:
            yield from check_batch(meta)
            yield from check_heads(num_qo_heads, num_kv_heads, "persistent")
            yield from check_lengths(meta)

        fault = settle(findings(), "persistent", during="plan")
        planned = _Planned(
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim_qk,
            head_dim_vo=head_dim_vo,
            page_size=page_size,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            qo_indptr=qo_indptr.tolist(),
            kv_indptr=kv_indptr.tolist(),
            lengths=as_read(kv_len_arr, len(kv_len_arr)).tolist(),
            indices=kv_indices,
            causal=causal,
            sm_scale=sm_scale,
            soft_cap=cap,
            fault=fault,
        )
        buffers = {"float_workspace_buffer": self.float_workspace_buffer}
        buffers["int_workspace_buffer"] = self.int_workspace_buffer
        self._schedule(_batch(planned), "persistent", "persistent", buffers)
        self._planned = planned
        self.plan_count += 1
        self.last_plan = kept_arguments(arguments)

    def prewarm_paged_kv_stride_variant(self, variant: str = "independent") -> None:
        """Nothing to load here: K and V may have different strides anyway. Errors as in the real package."""
        if variant != "independent":
            message = f"variant must be 'independent', got {variant!r}"
            refuse_option("variant", variant, "independent", ValueError, message, "persistent")
        if self._planned is None:
            words = "plan() must complete before prewarming a paged-KV-stride variant."
            outcome = raises(RuntimeError, words)
            params = {"wrapper": type(self).__name__}
            settle([Finding(m.RUN_BEFORE_PLAN, "plan", params, outcome)], "persistent", during="run")

    def run(
        self,
        q: torch.Tensor,
        kv_cache: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        k_scale: torch.Tensor | None = None,
        v_scale: torch.Tensor | None = None,
        logits_soft_cap: float = 0.0,
        profiler_buffer: torch.Tensor | None = None,
        kv_cache_sf: torch.Tensor | tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attention of one layer: (out, lse), always both.

        q: [qo_indptr[-1], num_qo_heads, head_dim]. kv_cache: see `flashinfer._cache.unpack_cache`. out has q's shape and
        type, lse is float32 [tokens, heads] in base 2. Rows that see no KV are 0 with LSE -inf.
        """
        require_context()
        only_default(
            k_scale=(k_scale, None),
            v_scale=(v_scale, None),
            profiler_buffer=(profiler_buffer, None),
            kv_cache_sf=(kv_cache_sf, None),
        )
        if self._planned is None:
            params = {"wrapper": type(self).__name__}
            settle([Finding(m.RUN_BEFORE_PLAN, "plan", params, ms.NO_PLAN)], "persistent", during="run")
        planned = self._planned
        assert planned is not None
        cap = {"logits_soft_cap": logits_soft_cap}
        require_numbers(cap, "persistent", during="run", required=("logits_soft_cap",))
        outputs = {name: tensor for name, tensor in (("out", out), ("lse", lse)) if tensor is not None}
        settle(check_tensors("dtype", q=q, **outputs), "persistent", during="run")
        k_cache, v_cache = unpack_cache(kv_cache, self._kv_layout, "persistent")
        found = self._findings(planned, q, k_cache, v_cache, out, lse, logits_soft_cap)
        of_run = settle(found, "persistent", during="run")
        fault = planned.fault or of_run
        act(fault)
        if fault is not None and fault.kind == "nan":
            nan = torch.full_like(q, math.nan), torch.full(q.shape[:2], math.nan)
            self.run_count += 1
            return nan[0] if out is None else out.copy_(nan[0]), nan[1] if lse is None else lse.copy_(nan[1])
        pages, page_size = k_cache.shape[0], page_size_of(k_cache, self._kv_layout)
        requests = [
            Request(planned.qo_indptr[i], planned.qo_indptr[i + 1], planned.slots(i, pages, page_size))
            for i in range(len(planned.lengths))
        ]
        scale = q.shape[-1] ** -0.5 if planned.sm_scale is None else planned.sm_scale
        variant = Variant(scale=scale, causal=planned.causal, soft_cap=logits_soft_cap)
        layout = self._kv_layout
        # A q of another type is taken for the bits of the planned one.
        seen = q if q.dtype == k_cache.dtype else q.view(k_cache.dtype)
        caches = planned.heads_of(k_cache, layout), planned.heads_of(v_cache, layout)
        result, natural = attend(seen, *caches, requests, variant, layout=layout, with_lse=True)
        assert natural is not None
        result, base2 = result.view(q.dtype), natural / LN2
        for start, stop in planned.unwritten():
            result[start:stop] = _UNWRITTEN if out is None else out[start:stop]
            base2[start:stop] = _UNWRITTEN if lse is None else lse[start:stop]
        self.run_count += 1
        return result if out is None else out.copy_(result), base2 if lse is None else lse.copy_(base2)

    def _findings(
        self,
        planned: _Planned,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        out: torch.Tensor | None,
        lse: torch.Tensor | None,
        soft_cap: float,
    ) -> Iterator[Finding]:
        if soft_cap != planned.soft_cap:
            outcome = ms.CAP_WITHOUT_PLAN if planned.soft_cap <= 0 < soft_cap else None
            if soft_cap == 0.0 < planned.soft_cap:
                outcome = NAN
            params = {"value": soft_cap, "planned": planned.soft_cap}
            yield Finding(ms.SOFT_CAP_DIFFERS, "logits_soft_cap", params, outcome)
        for found in check_dtypes(planned, q, k_cache, v_cache):
            halves = found.argument == "q" and q.element_size() == planned.q_dtype.itemsize == 2
            yield replace(found, outcome=ms.UNNOTICED if halves else UNMEASURED)
        yield from check_dimensions(planned, q)
        if q.shape[0] != planned.qo_indptr[-1]:
            yield Finding(m.Q_ROWS, "q", {"value": q.shape[0], "planned": planned.qo_indptr[-1]})
        for found in check_shapes(planned, q, k_cache, v_cache, self._kv_layout):
            heads = found.params.get("dimension") == "KV heads"
            yield replace(found, outcome=ms.UNNOTICED if heads else UNMEASURED)
        yield from check_strides(planned, q, k_cache, v_cache)
        if planned.fault is not None:
            # Faithful mode, and the plan is wrong already: what follows from that is no second mistake.
            return
        page_size = page_size_of(k_cache, self._kv_layout)
        if page_size != planned.page_size:
            params = {"value": page_size, "planned": planned.page_size}
            there = k_cache.shape[0] > 0 and page_size > 0
            yield Finding(mp.PAGE_SIZE_DIFFERS, "kv_cache", params, ms.UNNOTICED if there else UNMEASURED)
        yield from check_pages(planned.indices, planned.kv_indptr[-1], k_cache.shape[0], "kv_indices")
        for name, tensor, shape, dtype in (
            ("out", out, tuple(q.shape), q.dtype),
            ("lse", lse, tuple(q.shape[:2]), torch.float32),
        ):
            if tensor is not None and (tuple(tensor.shape) != shape or tensor.dtype != dtype):
                params = {"got": f"{tensor.dtype} {list(tensor.shape)}", "expected": f"{dtype} {list(shape)}"}
                yield Finding(m.OUT_MISMATCH, name, {**params, "message": ""}, UNMEASURED)
            if tensor is not None:
                yield from check_written(name, tensor)


def _batch(planned: _Planned) -> Batch | None:
    if planned.fault is not None:
        return None
    of = range(len(planned.lengths))
    return Batch(
        qo_lens=tuple(planned.qo_indptr[i + 1] - planned.qo_indptr[i] for i in of),
        kv_pages=tuple(planned.kv_indptr[i + 1] - planned.kv_indptr[i] for i in of),
        kv_lens=tuple(planned.lengths),
        num_qo_heads=planned.num_qo_heads,
        num_kv_heads=planned.num_kv_heads,
        head_dim=planned.head_dim,
        head_dim_vo=planned.head_dim_vo,
        page_size=planned.page_size,
        dtype=str(planned.q_dtype).removeprefix("torch."),
        causal=planned.causal,
        soft_cap=planned.soft_cap > 0,
    )


__all__ = ["BatchAttention", "BatchAttentionWithAttentionSinkWrapper"]
