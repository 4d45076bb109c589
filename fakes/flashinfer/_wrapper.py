"""What all attention wrappers have in common: buffers, the books of plan and run, the checks of q and cache
before the reference computes, and what becomes of its results.

Invariants
- `_plan` is None until the first plan succeeds and is replaced, never changed into another batch's.
- `plan_count` counts plans that succeeded, `run_count` runs that returned.
- `_int_workspace_buffer` and `_pin_memory_int_workspace_buffer` may be replaced or shared by the caller
  at any time; whose schedule they hold is noted on the buffer itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels import mistakes_masks as mm
from fake_kernels import mistakes_paged as mp
from fake_kernels.checks_masks import MaskOf
from fake_kernels.checks_paged import check_heads
from fake_kernels.checks_values import check_tensors
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, act, settle
from fake_kernels.outcomes import GARBAGE, UNMEASURED, Path
from fake_kernels.reference import Layout, Request, attend
from fake_kernels.variants import Variant

from flashinfer._cache import kv_heads_of, page_size_of
from flashinfer._call_checks import check_dimensions, check_dtypes, check_shapes, check_strides
from flashinfer._jit import JitVariant
from flashinfer._memory import GivenMemory
from flashinfer._misread import at_pools_start, cache_fits, leave_out, shift_rows
from flashinfer._options import check_positions, only_default, position_parts, refuse_option, require_numbers
from flashinfer._other_kernel import attend_as_compiled, window_and_cap
from flashinfer._plan import (
    Plan,
    arrays_in_place,
    device_arrays,
    kept_arguments,
    own_workspace,
    owner,
    planner_lengths,
    unfilled_buffers,
)
from flashinfer._schedule import Scheduled, batch_of

LN2 = math.log(2.0)

_INT_WORKSPACE_BYTES = 8 * 1024 * 1024


class AttentionWrapper(GivenMemory, Scheduled):
    """Base of the wrappers; see the module. Not part of the real package's interface."""

    plan_count: int
    run_count: int
    last_plan: dict[str, Any] | None

    def _start(self, float_workspace_buffer: torch.Tensor, kv_layout: str, backend: str, graph: bool) -> None:
        if kv_layout not in ("NHD", "HND"):
            message = f"Invalid kv_layout {kv_layout}"
            refuse_option("kv_layout", kv_layout, "NHD, HND", KeyError, message, self._default_path)
        if backend not in ("auto", "fa2", "fa3"):
            raise not_modelled("backend", backend)
        self._check_workspace(float_workspace_buffer, "float_workspace_buffer")
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
        self._jit: JitVariant | None = None
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
        self._check_workspace(float_workspace_buffer, "float_workspace_buffer")
        self._check_workspace(int_workspace_buffer, "int_workspace_buffer")
        self._float_workspace_buffer = float_workspace_buffer
        self._int_workspace_buffer = int_workspace_buffer
        self._pin_memory_int_workspace_buffer = torch.empty(int_workspace_buffer.shape, dtype=torch.uint8)

    # -- plan ---------------------------------------------------------------------------------------

    def _make_plan(
        self,
        given: dict[str, tuple[str, torch.Tensor]],
        found: Iterable[Finding],
        path: Path,
        *,
        batch: int,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        head_dim_vo: int,
        page_size: int,
        q_dtype: torch.dtype,
        kv_dtype: torch.dtype,
        non_blocking: bool,
        seq_lens: torch.Tensor | None = None,
        mask: MaskOf | None = None,
        cache_names: tuple[str, str] = ("paged_kv_cache", "paged_kv_cache"),
        in_place: bool = False,
        scheduled_for: list[int] | None = None,
    ) -> Plan:
        """Check a batch and keep it; the caller sets the attributes of its own and counts the plan.

        given: the arrays by key (indptr, indices, last, qo), each with the caller's name for it, or "" if it
        is none of the caller's. found: what is wrong with them. in_place: the kernel reads them where they lie.
        scheduled_for: the indptr that the schedule is made from, if it is another one.
        """
        self._check_workspace(self._float_workspace_buffer, "float_workspace_buffer")
        self._check_workspace(self._int_workspace_buffer, "int_workspace_buffer")

        def findings() -> Iterator[Finding]:
            yield from self._second_plan()
            yield from found
            yield from check_heads(num_qo_heads, num_kv_heads, path)
            if mask is not None and mask.is_given:
                yield from mask.findings(path)
            elif "mask" in (self._graph_buffers or {}):
                yield Finding(mm.MASK_MISSING, "custom_mask")
            if self._jit is not None:
                yield from self._jit.plan_findings((q_dtype, kv_dtype), (head_dim, head_dim_vo))

        fault = settle(findings(), path, during="plan") or self._buffer_fault
        tensors = {k: t for k, (_, t) in given.items()}
        unfilled = {}
        if in_place:
            arrays = arrays_in_place(tensors, self._graph_buffers)
            unfilled = unfilled_buffers(arrays, tensors) if self._use_cuda_graph else {}
        else:
            arrays = device_arrays(tensors, batch, self._graph_buffers, fault)
        named = {key: of for key, of in given.items() if of[0]}
        if mask is None or not mask.is_given:
            arrays |= self._mask_left()
        else:
            arrays |= self._mask_arrays(mask)
            if mask.packed is not None:
                named["mask"] = (mask.argument, mask.packed)
        return Plan(
            path=path,
            batch=batch,
            num_qo_heads=num_qo_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            head_dim_vo=head_dim_vo,
            page_size=page_size,
            q_dtype=q_dtype,
            kv_dtype=kv_dtype,
            cache_names=cache_names,
            names={key: name for key, (name, _) in named.items()},
            arrays=arrays,
            sources=self._watched(named, non_blocking, in_place),
            planned_indptr=scheduled_for or (tensors if in_place else arrays)["indptr"].tolist(),
            planned_lengths=planner_lengths(tensors if in_place else arrays, page_size, batch, seq_lens),
            in_place=in_place,
            unfilled=unfilled,
            graph=self._use_cuda_graph,
            non_blocking=non_blocking,
            fault=fault,
        )

    def _watched(
        self, named: dict[str, tuple[str, torch.Tensor]], non_blocking: bool, in_place: bool
    ) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """The caller's tensors that must not change before the run, with what they hold now."""
        read_later = not self._use_cuda_graph if in_place else non_blocking
        return {name: (t, t.clone()) for name, t in named.values()} if read_later else {}

    def _mask_left(self) -> dict[str, torch.Tensor]:
        """The mask that a batch without one gets all the same (faithful mode): what the buffers for CUDA graphs hold, or
        in a ragged wrapper that of an earlier plan."""
        held = self._graph_buffers or (
            self._plan.arrays if self._plan and getattr(self, "_had_mask", False) else {}
        )
        return {key: held[key] for key in ("mask", "mask_indptr") if key in held}

    def _mask_arrays(self, mask: MaskOf) -> dict[str, torch.Tensor]:
        """The bytes and starts of a mask where the kernel reads them; under CUDA graphs in the buffers."""
        bits, starts = mask.read()
        if self._graph_buffers is None:
            return {"mask": bits, "mask_indptr": starts}
        for key, name in (("mask", "custom_mask_buf"), ("mask_indptr", "mask_indptr_buf")):
            if key not in self._graph_buffers:
                message = (
                    f"{name} must be initialized with a torch.Tensor in cuda graph mode if we use custom mask "
                    "in attention computation."
                )
                settle([Finding(mm.MASK_BUFFERS, name, {"message": message})], self._path(), during="plan")
        self._graph_buffers["mask"][: len(bits)].copy_(bits)
        self._graph_buffers["mask_indptr"].copy_(starts)
        return {key: self._graph_buffers[key] for key in ("mask", "mask_indptr")}

    def _keep_scoring(
        self,
        *,
        causal: bool,
        window_left: int,
        logits_soft_cap: float | None,
        sm_scale: float | None,
        pos_encoding_mode: str,
        rope_scale: float | None,
        rope_theta: float | None,
    ) -> None:
        """What a plan, or the deprecated forward, says about scores; under the library's own names."""
        self._causal = causal
        self._window_left = window_left
        self._logits_soft_cap = logits_soft_cap
        self._sm_scale = sm_scale
        self._pos_encoding_mode = pos_encoding_mode
        self._rope_scale = rope_scale
        self._rope_theta = rope_theta

    def _keep(
        self, plan: Plan, arguments: dict[str, Any], compiled_for: dict[str, Any] | None = None
    ) -> None:
        """Make this the last plan. compiled_for: what of `arguments` the schedule takes from the kernel instead."""
        batch = batch_of(
            plan,
            {**arguments, **(compiled_for or {})},
            getattr(self, "_max_total_num_rows", None),
            "JIT variant" * bool(self._jit),
        )
        buffers = {"float_workspace_buffer": self._float_workspace_buffer}
        self._schedule(
            batch, plan.path, plan.path, {**buffers, "_int_workspace_buffer": self._int_workspace_buffer}
        )
        plan.timetable = self._timetable
        self._plan = plan
        own_workspace(self._int_workspace_buffer, plan)
        own_workspace(self._pin_memory_int_workspace_buffer, plan)
        self.plan_count += 1
        self.last_plan = kept_arguments(arguments)

    def _second_plan(self) -> Iterator[Finding]:
        before = owner(self._pin_memory_int_workspace_buffer)
        # Under CUDA graphs a plan is followed by a replay, which run never sees.
        if before is None or before.has_run or before.graph or not before.non_blocking:
            return
        yield Finding(m.SECOND_PLAN, "_pin_memory_int_workspace_buffer")

    # -- run ----------------------------------------------------------------------------------------

    def _launch(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        *,
        args: tuple[Any, ...] = (),
        window_left: int | None = None,
        with_lse: bool = False,
        layout: Layout | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Check one run and compute it: out [rows, heads, head_dim of V], natural LSE [rows, heads] or None.

        k_cache, v_cache: 4-D, in `layout` (the wrapper's own by default). args: for a JIT variant.
        """
        layout = self._kv_layout if layout is None else layout
        path = self._path()
        plan = self._planned(path)
        settle(check_tensors("dtype", q=q), path, during="run")
        plan.has_run = True
        found = settle(
            self._call_findings(plan, q, k_cache, v_cache, layout, window_left), path, during="run"
        )
        fault = plan.fault or found
        too_long = fault is not None and fault.kind == "illegal" and fault.message.startswith("last_page_len")
        if too_long and page_size_of(k_cache, layout) > plan.page_size:
            # Measured: a last page that is too large for the planned page size ends within the cache's larger page.
            fault = GARBAGE
        act(fault)
        if found is not None and any(f.mistake is m.CHANGED_AFTER_PLAN for f in plan.changes()):
            plan.take_changes()
        if fault is not None and not cache_fits(plan, k_cache, v_cache):
            # Faithful mode, and one mistake of two: what the other one does to this one's numbers nobody knows.
            raise not_modelled(plan.cache_names[0], k_cache)
        if fault is not None and fault.kind == "nan":
            return torch.full_like(q, math.nan), torch.full(q.shape[:2], math.nan) if with_lse else None
        variant = self._variant(plan, q, args)
        requests = self._requests(plan, q, page_size_of(k_cache, layout), k_cache.shape[0])
        kv_heads = kv_heads_of(k_cache, layout)
        if v_cache.dtype != k_cache.dtype:
            v_cache = v_cache.view(k_cache.dtype)
        if q.shape[1] % kv_heads:
            k_cache, v_cache = self._with_broken_groups(q.shape[1], k_cache, v_cache, layout)
        head_dim = self._compiled_head_dim(plan)
        how: dict[str, Any] = {"layout": layout, "with_lse": with_lse}
        if head_dim != q.shape[-1]:
            out, lse = attend_as_compiled(head_dim, q, k_cache, v_cache, requests, variant, **how)
        else:
            out, lse = attend(q, k_cache, v_cache, requests, variant, **how)
        leave_out(plan, q.shape[1], kv_heads, out, lse)
        shift_rows(plan, out, lse)
        return out, lse

    def _requests(self, plan: Plan, q: torch.Tensor, page_size: int, num_pages: int) -> list[Request]:
        """What each request reads of a cache of `num_pages` pages, as the kernel of this plan and these rows reads it."""
        other = owner(self._int_workspace_buffer)
        if other is not None and other is not plan and "indices" in plan.arrays:
            return plan.requests_of(other, page_size, num_pages)
        requests = plan.requests(page_size, num_pages)
        return at_pools_start(requests) if plan.path == "dec" and q.shape[0] > plan.batch else requests

    def _compiled_head_dim(self, plan: Plan) -> int:
        """head_dim of q and K in the kernel: that of the plan, unless it is a kernel of an earlier plan or a declared one."""
        if self._jit is not None:
            return self._jit.head_dims[0]
        return plan.head_dim if plan.compiled is None else int(plan.compiled["head_dim"])

    def _variant(self, plan: Plan, q: torch.Tensor, args: tuple[Any, ...]) -> Variant:
        """What the plan and the forward() before this run say about scores. A custom mask takes the place
        of the causal one."""
        scale = q.shape[-1] ** -0.5 if self._sm_scale is None else self._sm_scale
        window, cap = self._window_left, self._logits_soft_cap or 0.0
        if plan.compiled is not None:
            window, cap = window_and_cap(plan.compiled, plan.path, window, cap)
        causal = self._causal and not plan.masks
        if self._jit is None:
            only_default(args=(args, ()))
            mode = self._pos_encoding_mode if plan.compiled is None else plan.compiled["pos_encoding_mode"]
            positions = position_parts(mode, self._rope_scale, self._rope_theta, plan.num_qo_heads)
            more = (*positions, *plan.masks)
            return Variant(scale, causal, window, soft_cap=cap, more=more)
        known = {
            "sm_scale": scale,
            "logits_soft_cap": cap,
            "window_left": self._window_left,
            "num_qo_heads": plan.num_qo_heads,
            "num_kv_heads": plan.num_kv_heads,
            "maybe_custom_mask": plan.arrays.get("mask"),
            "maybe_mask_indptr": plan.arrays.get("mask_indptr"),
        }
        causal = causal and not getattr(self, "_variant_owns_mask", False)
        return Variant(scale, causal, own=self._jit.bound(args, known, plan.path))

    def _results(
        self,
        out: torch.Tensor,
        natural: torch.Tensor | None,
        into: torch.Tensor | None,
        lse: torch.Tensor | None,
        base: str = "log2",
        order: str = "NH",
        *,
        asked: bool = True,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """What run returns: the output, put `into` the caller's tensor if there is one, and the LSE in the
        base and order asked for. Counts the run. asked: whether the LSE is to be returned; a tensor for it that is given
        without that is filled as the kernel does it, in base 2."""
        if into is not None:
            self._check_out(into, tuple(out.shape), out.dtype, "out")
        told = natural
        if natural is not None:
            told = natural if asked and base == "ln" else natural / LN2
            told = told if not asked or order == "NH" else told.t().contiguous()
            if lse is not None and asked:
                self._check_out(lse, tuple(told.shape), torch.float32, "lse")
                told = lse.copy_(told)
            elif lse is not None:
                self._fill_unasked_lse(lse, told)
        if into is not None:
            out = self._written(into, out)
        self.run_count += 1
        return out if told is None or not asked else (out, told)

    def _reads_pages(self) -> bool:
        return self._plan is not None and "indices" in self._plan.arrays

    def _rows_written(self, rows: int) -> int:
        if self._plan is None or "qo" in self._plan.arrays:
            return rows
        return min(rows, self._plan.batch)

    def _with_broken_groups(
        self, qo_heads: int, k_cache: torch.Tensor, v_cache: torch.Tensor, layout: Layout
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Heads that can't be shared out, as CUDA-core decode takes them: KV head = head // (Hq // Hkv)."""
        heads = kv_heads_of(k_cache, layout)
        group = max(1, qo_heads // heads)
        picked = torch.arange(qo_heads).div(group, rounding_mode="floor").remainder(heads)
        dim = 2 if layout == "NHD" else 1
        return k_cache.index_select(dim, picked), v_cache.index_select(dim, picked)

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
        layout: Layout,
        window_left: int | None,
    ) -> Iterator[Finding]:
        yield from check_dtypes(plan, q, k_cache, v_cache)
        yield from check_dimensions(plan, q)
        yield from self._row_findings(plan, q)
        if window_left is not None and window_left != self._window_left:
            params = {"value": window_left, "planned": self._window_left}
            yield Finding(m.WINDOW_DIFFERS, "window_left", params)
        yield from check_shapes(plan, q, k_cache, v_cache, layout)
        yield from check_strides(plan, q, k_cache, v_cache)
        if plan.fault is not None:
            # Faithful mode, and the plan is wrong already: what follows from that is no second mistake.
            return
        page_size = page_size_of(k_cache, layout)
        if page_size != plan.page_size:
            yield Finding(
                mp.PAGE_SIZE_DIFFERS, "paged_kv_cache", {"value": page_size, "planned": plan.page_size}
            )
        other = owner(self._int_workspace_buffer)
        if other is not plan:
            outcome = UNMEASURED if other is None or "indices" not in plan.arrays else None
            yield Finding(m.PLAN_OVERWRITTEN, "_int_workspace_buffer", {}, outcome)
        yield from plan.changes()
        yield from plan.page_findings(k_cache.shape[0])

    def _check_run_window(self, window_left: int | None) -> None:
        """run's window_left=, None for that of the plan."""
        if window_left is not None:
            require_numbers({"window_left": window_left}, self._path(), during="run")

    def _check_sinks(self, sinks: torch.Tensor | None, args: tuple[Any, ...]) -> None:
        """run's sinks=, which none of these kernels uses. args: what was given by position."""
        if sinks is not None and self._jit is None:
            settle([Finding(mm.SINKS_IGNORED, "sinks")], self._path(), during="run")
        elif sinks is not None:
            outcome = None if self._jit is not None and self._jit.takes_tensors and not args else UNMEASURED
            settle([Finding(mm.SINKS_BY_KEYWORD, "sinks", {}, outcome)], self._path(), during="run")

    def _row_findings(self, plan: Plan, q: torch.Tensor) -> Iterator[Finding]:
        raise NotImplementedError

    def _override(
        self,
        pos_encoding_mode: str,
        window_left: int,
        logits_soft_cap: float | None,
        sm_scale: float | None,
        rope_scale: float | None,
        rope_theta: float | None,
        *,
        causal: bool = False,
    ) -> None:
        """What the deprecated forward() does first: put its own options in place of the plan's."""
        given = {
            "window_left": window_left,
            "logits_soft_cap": logits_soft_cap,
            "sm_scale": sm_scale,
            "rope_scale": rope_scale,
            "rope_theta": rope_theta,
        }
        require_numbers(given, self._path(), during="run")
        check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, self._path())
        self._keep_scoring(
            causal=causal,
            window_left=window_left,
            logits_soft_cap=logits_soft_cap,
            sm_scale=sm_scale,
            pos_encoding_mode=pos_encoding_mode,
            rope_scale=rope_scale,
            rope_theta=rope_theta,
        )
