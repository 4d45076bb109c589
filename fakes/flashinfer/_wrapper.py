"""What the decode and the prefill wrapper have in common: buffers, the books of plan and run, and the
checks of q and cache before the reference computes.

Invariants
- `_plan` is None until the first plan succeeds and is replaced, never changed into another batch's.
- `plan_count` counts plans that succeeded, `run_count` runs that returned.
- `_int_workspace_buffer` and `_pin_memory_int_workspace_buffer` may be replaced or shared by the caller
  at any time; whose schedule they hold is noted on the buffer itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels import mistakes_paged as mp
from fake_kernels.checks_paged import PagedMetadata, check_heads, check_metadata, check_vectors
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, act, require_context, settle
from fake_kernels.outcomes import Path, raises
from fake_kernels.reference import Layout, Variant, attend

from flashinfer._cache import kv_heads_of, page_size_of, unpack_cache
from flashinfer._call_checks import check_dtypes, check_shapes, check_strides
from flashinfer._plan import Plan, device_arrays, own_workspace, owner, planner_lengths

LN2 = math.log(2.0)
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
"""float32 is ours: the real kernels have no such instance, but engines are judged in it on a CPU."""

_INT_WORKSPACE_BYTES = 8 * 1024 * 1024


class PagedWrapper:
    """Base of the wrappers; see the module. Not part of the real package's interface."""

    _default_path: Path = "dec"

    plan_count: int
    run_count: int
    last_plan: dict[str, Any] | None

    def _start(self, float_workspace_buffer: torch.Tensor, kv_layout: str, backend: str, graph: bool) -> None:
        if kv_layout not in ("NHD", "HND"):
            self._refuse_option(
                "kv_layout", kv_layout, "NHD, HND", KeyError, f"Invalid kv_layout {kv_layout}"
            )
        if backend not in ("auto", "fa2", "fa3"):
            raise not_modelled("backend", backend)
        self._check_alignment(float_workspace_buffer, "float_workspace_buffer")
        self._kv_layout: Layout = kv_layout  # type: ignore[assignment]
        self._float_workspace_buffer = float_workspace_buffer
        self.device = float_workspace_buffer.device
        self._int_workspace_buffer = torch.empty(_INT_WORKSPACE_BYTES, dtype=torch.uint8, device=self.device)
        self._pin_memory_int_workspace_buffer = torch.empty(_INT_WORKSPACE_BYTES, dtype=torch.uint8)
        self._backend = backend
        self._use_cuda_graph = graph
        self._fixed_batch_size = 0
        self._graph_buffers: dict[str, torch.Tensor] | None = None
        self._plan: Plan | None = None
        self.plan_count = 0
        self.run_count = 0
        self.last_plan = None

    @property
    def is_cuda_graph_enabled(self) -> bool:
        """Whether the wrapper works in buffers fixed at construction."""
        return self._use_cuda_graph

    def reset_workspace_buffer(
        self, float_workspace_buffer: torch.Tensor, int_workspace_buffer: torch.Tensor
    ) -> None:
        """Replace both workspaces, uint8 [bytes]; the pinned copy is allocated anew."""
        self._check_alignment(float_workspace_buffer, "float_workspace_buffer")
        self._check_alignment(int_workspace_buffer, "int_workspace_buffer")
        self._float_workspace_buffer = float_workspace_buffer
        self._int_workspace_buffer = int_workspace_buffer
        self._pin_memory_int_workspace_buffer = torch.empty(int_workspace_buffer.shape, dtype=torch.uint8)

    # -- plan ---------------------------------------------------------------------------------------

    def _make_plan(
        self,
        meta: PagedMetadata,
        path: Path,
        *,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        q_dtype: torch.dtype,
        kv_dtype: torch.dtype,
        non_blocking: bool,
    ) -> Plan:
        """Check a batch and keep it; the caller sets the attributes of its own and counts the plan."""
        self._check_alignment(self._float_workspace_buffer, "float_workspace_buffer")
        self._check_alignment(self._int_workspace_buffer, "int_workspace_buffer")

        def findings() -> Iterator[Finding]:
            yield from self._second_plan()
            yield from check_metadata(meta, path)
            yield from check_heads(num_qo_heads, num_kv_heads, path)

        fault = settle(findings(), path, during="plan")
        names = {"indptr": meta.indptr_name, "indices": meta.indices_name, "last": meta.last_name}
        given = {meta.indptr_name: meta.kv_indptr, meta.indices_name: meta.indices}
        given[meta.last_name] = meta.last_page_len
        if meta.qo_indptr is not None:
            names["qo"] = meta.qo_name
            given[meta.qo_name] = meta.qo_indptr
        arrays = device_arrays(meta, self._graph_buffers, fault)
        return Plan(
            path=path,
            batch=meta.batch,
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            page_size=meta.page_size,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            names=names,
            arrays=arrays,
            sources={name: (t, t.clone()) for name, t in given.items()} if non_blocking else {},
            planned_indptr=arrays["indptr"].tolist(),
            planned_lengths=planner_lengths(meta, arrays),
            graph=self._use_cuda_graph,
            non_blocking=non_blocking,
            fault=fault,
        )

    def _keep(self, plan: Plan, arguments: dict[str, Any]) -> None:
        self._plan = plan
        own_workspace(self._int_workspace_buffer, plan)
        own_workspace(self._pin_memory_int_workspace_buffer, plan)
        self.plan_count += 1
        self.last_plan = {
            name: value.clone() if isinstance(value, torch.Tensor) else value
            for name, value in arguments.items()
        }

    def _second_plan(self) -> Iterator[Finding]:
        before = owner(self._pin_memory_int_workspace_buffer)
        # Under CUDA graphs a plan is followed by a replay, which run never sees.
        if before is None or before.has_run or before.graph or not before.non_blocking:
            return
        yield Finding(m.SECOND_PLAN, "_pin_memory_int_workspace_buffer")

    def _check_vectors(self, meta: PagedMetadata) -> None:
        settle(check_vectors(meta), self._path(), during="plan")

    # -- run ----------------------------------------------------------------------------------------

    def _launch(
        self,
        q: torch.Tensor,
        paged_kv_cache: object,
        variant_of: Any,
        *,
        window_left: int | None,
        with_lse: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Check one run and compute it: out [rows, heads, head_dim], natural LSE [rows, heads] or None."""
        require_context()
        path = self._path()
        k_cache, v_cache = unpack_cache(paged_kv_cache, self._kv_layout, path)
        plan = self._planned(path)
        plan.has_run = True
        found = settle(self._call_findings(plan, q, k_cache, v_cache, window_left), path, during="run")
        fault = plan.fault or found
        act(fault)
        if found is not None and any(True for _ in plan.changes()):
            plan.take_changes()
        if fault is not None and fault.kind == "nan":
            return torch.full_like(q, math.nan), torch.full(q.shape[:2], math.nan) if with_lse else None
        requests = plan.requests(page_size_of(k_cache, self._kv_layout), k_cache.shape[0])
        requests = [r for r in requests if r.stop <= q.shape[0]]
        if q.shape[1] % kv_heads_of(k_cache, self._kv_layout):
            return self._with_broken_groups(q, k_cache, v_cache, requests, variant_of(q), with_lse)
        return attend(q, k_cache, v_cache, requests, variant_of(q), layout=self._kv_layout, with_lse=with_lse)

    def _with_broken_groups(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        requests: Any,
        variant: Variant,
        with_lse: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Heads that can't be shared out, as CUDA-core decode takes them: KV head = head // (Hq // Hkv)."""
        heads = kv_heads_of(k_cache, self._kv_layout)
        group = max(1, q.shape[1] // heads)
        picked = torch.arange(q.shape[1]).div(group, rounding_mode="floor").remainder(heads)
        dim = 2 if self._kv_layout == "NHD" else 1
        k, v = k_cache.index_select(dim, picked), v_cache.index_select(dim, picked)
        return attend(q, k, v, requests, variant, layout=self._kv_layout, with_lse=with_lse)

    def _planned(self, path: Path) -> Plan:
        if self._plan is None:
            settle([Finding(m.RUN_BEFORE_PLAN, "plan", {"wrapper": type(self).__name__})], path, during="run")
        assert self._plan is not None
        return self._plan

    def _call_findings(
        self,
        plan: Plan,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        window_left: int | None,
    ) -> Iterator[Finding]:
        yield from check_dtypes(plan, q, k_cache, v_cache)
        yield from self._row_findings(plan, q)
        planned_window: int = getattr(self, "_window_left", -1)
        if window_left is not None and window_left != planned_window:
            yield Finding(m.WINDOW_DIFFERS, "window_left", {"value": window_left, "planned": planned_window})
        yield from check_shapes(plan, q, k_cache, v_cache, self._kv_layout)
        yield from check_strides(plan, q, k_cache, v_cache)
        if plan.fault is not None:
            # Faithful mode, and the plan is wrong already: what follows from that is no second mistake.
            return
        page_size = page_size_of(k_cache, self._kv_layout)
        if page_size != plan.page_size:
            yield Finding(
                mp.PAGE_SIZE_DIFFERS, "paged_kv_cache", {"value": page_size, "planned": plan.page_size}
            )
        if owner(self._int_workspace_buffer) is not plan:
            yield Finding(m.PLAN_OVERWRITTEN, "_int_workspace_buffer")
        yield from plan.changes()
        yield from plan.page_findings(k_cache.shape[0])

    def _row_findings(self, plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
        raise NotImplementedError

    def _path(self) -> Path:
        raise NotImplementedError

    # -- small checks -------------------------------------------------------------------------------

    def _check_out(self, tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, name: str) -> None:
        for aspect, got, expected in (
            ("shape", str(tensor.shape), str(torch.Size(shape))),
            ("dtype", str(tensor.dtype), str(dtype)),
        ):
            if got != expected:
                message = f"Invalid {aspect} of {name}: expected {expected}, got {got}"
                params = {"got": got, "expected": expected, "message": message}
                settle([Finding(m.OUT_MISMATCH, name, params)], self._path(), during="run")

    def _refuse_option(
        self, name: str, value: object, allowed: str, raised: type[Exception], message: str
    ) -> None:
        outcome = raises(raised, message.replace("{", "{{").replace("}", "}}"))
        settle(
            [Finding(m.BAD_OPTION, name, {"value": str(value), "allowed": allowed}, outcome)],
            self._default_path,
            during="plan",
        )

    def _check_common_options(
        self,
        pos_encoding_mode: str,
        rope_scale: float | None,
        rope_theta: float | None,
        o_dtype: torch.dtype,
        q_dtype: torch.dtype,
    ) -> None:
        """Options that both plans take and that the fake computes only at their defaults."""
        self._check_position_options(pos_encoding_mode, rope_scale, rope_theta)
        if o_dtype != q_dtype:
            raise not_modelled("o_data_type", str(o_dtype))
        if q_dtype not in DTYPES:
            raise not_modelled("q_data_type", str(q_dtype))

    def _check_position_options(
        self, pos_encoding_mode: str, rope_scale: float | None, rope_theta: float | None
    ) -> None:
        if pos_encoding_mode not in ("NONE", "ROPE_LLAMA", "ALIBI"):
            self._refuse_option(
                "pos_encoding_mode",
                pos_encoding_mode,
                "NONE, ROPE_LLAMA, ALIBI",
                KeyError,
                f"Invalid pos_encoding_mode {pos_encoding_mode}",
            )
        only_default(
            pos_encoding_mode=(pos_encoding_mode, "NONE"),
            rope_scale=(rope_scale, None),
            rope_theta=(rope_theta, None),
        )

    def _override(
        self,
        pos_encoding_mode: str,
        window_left: int,
        logits_soft_cap: float | None,
        sm_scale: float | None,
        rope_scale: float | None,
        rope_theta: float | None,
    ) -> None:
        """What the deprecated forward() does first: put its own options in place of the plan's."""
        self._check_position_options(pos_encoding_mode, rope_scale, rope_theta)
        self._window_left = window_left
        self._logits_soft_cap = logits_soft_cap
        self._sm_scale = sm_scale

    def _check_alignment(self, buffer: torch.Tensor, name: str) -> None:
        if buffer.numel() and buffer.data_ptr() % 16:
            rest = buffer.data_ptr() % 16
            message = f"{name} must be 16-byte aligned, got data_ptr % 16 = {rest}"
            self._refuse_option(
                name, f"at an address that is {rest} modulo 16", "multiples of 16", ValueError, message
            )

    def _graph_error(self, argument: str, message: str) -> None:
        finding = Finding(m.GRAPH_BUFFERS, argument, {"message": message})
        settle([finding], self._default_path, during="plan")


def only_default(**given: Any) -> None:
    """Refuse options that the fake doesn't compute. Each keyword is `name=(value, default)`."""
    for name, (value, default) in given.items():
        if value is default or (not isinstance(value, torch.Tensor) and value == default):
            continue
        raise not_modelled(name, value)


def canonical_dtype(dtype: Any) -> torch.dtype:
    """A torch dtype from itself or its name ("float16"); TypeError for anything else."""
    if isinstance(dtype, str):
        found = getattr(torch, dtype, None)
        if isinstance(found, torch.dtype):
            return found
        raise AttributeError(f"module 'torch' has no attribute {dtype!r}")
    if isinstance(dtype, torch.dtype):
        return dtype
    raise TypeError(f"dtype must be a string or torch.dtype, got {type(dtype)}")
