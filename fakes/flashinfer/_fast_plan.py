"""`fast_decode_plan`: a plan that copies nothing but the schedule, for engines that plan every decode step.

Facts from flashinfer 0.7.2.post1, `decode.py`, `fast_decode_plan`: it goes on with the kernel that the last `plan` chose;
without CUDA graphs the caller's tensors become the wrapper's; with them the buffers stay as the caller filled them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from fake_kernels import mistakes_fast_plan as m
from fake_kernels import schedule
from fake_kernels.checks_paged import PagedMetadata
from fake_kernels.checks_values import check_tensors
from fake_kernels.errors import not_modelled
from fake_kernels.findings import Finding, require_context, settle
from fake_kernels.outcomes import UNMEASURED, Outcome
from fake_kernels.paged import device_lengths

from flashinfer._misread import under_schedule
from flashinfer._options import caps, check_positions, only_default, planned_dtypes, require_numbers
from flashinfer._paged import require_window
from flashinfer._schedule import batch_of

if TYPE_CHECKING:
    from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper


def fast_decode_plan(
    self: BatchDecodeWithPagedKVCacheWrapper,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    num_qo_heads: int,
    num_kv_heads: int,
    head_dim: int,
    page_size: int,
    pos_encoding_mode: str = "NONE",
    window_left: int = -1,
    logits_soft_cap: float | None = None,
    q_data_type: str | torch.dtype | None = None,
    kv_data_type: str | torch.dtype | None = None,
    data_type: str | torch.dtype | None = None,
    sm_scale: float | None = None,
    rope_scale: float | None = None,
    rope_theta: float | None = None,
    non_blocking: bool = True,
    fixed_split_size: int | None = None,
    disable_split_kv: bool = False,
    q_len_per_req: int = 1,
    global_override_indptr_cpu: torch.Tensor | None = None,
) -> None:
    """Plan a batch of B requests with a wrapper that has been planned before; mostly bound in place of its `plan`.

    indptr int32 [B+1], indices int32 [>= indptr[-1]], last_page_len int32 [B], as in `plan`. They are read where they lie:
    under CUDA graphs the buffers of the wrapper must hold this batch when the kernel runs, without them these tensors must
    stay as they are until then. global_override_indptr_cpu: indptr on the CPU, which saves fetching it. q_data_type is
    float16 unless given, and must be that of the last `plan`, as must head_dim and whether there are a window, a cap,
    positions.
    """
    arguments = {name: value for name, value in locals().items() if name != "self"}
    require_context()
    path = self._path()
    before = self._chosen
    if before is None:
        named = {"wrapper": type(self).__name__}
        settle([Finding(m.FAST_PLAN_FIRST, "fast_decode_plan", named)], path, during="plan")
    q_data_type = q_data_type if q_data_type is not None else data_type or "float16"
    kv_data_type = kv_data_type if kv_data_type is not None else data_type
    require_numbers(arguments, path, during="plan")
    q_dtype, kv_dtype = planned_dtypes(q_data_type, kv_data_type, None, path)
    check_positions(pos_encoding_mode, rope_scale, rope_theta, logits_soft_cap, path)
    only_default(q_len_per_req=(q_len_per_req, 1))
    require_window(window_left)
    if fixed_split_size is not None and path == "dec":
        raise not_modelled("fixed_split_size", fixed_split_size)
    now = kernel_of(q_dtype, kv_dtype, head_dim, pos_encoding_mode, window_left, logits_soft_cap)
    compiled = before or now
    # The types of the last plan stay those that run compares q and K with, so it is run that finds this out.
    settle(_other_types(compiled, now), path, during="plan")
    other = list(_other_settings(compiled, now))
    fault = settle(other, path, during="plan")
    meta = PagedMetadata(
        indptr,
        indices,
        last_page_len,
        page_size,
        copied=self.is_cuda_graph_enabled,
        fast=path,
    )
    self._check_vectors(meta, path)
    if self.is_cuda_graph_enabled:
        self._check_graph_batch(meta)
    override = global_override_indptr_cpu
    if override is not None:
        settle(check_tensors("to", global_override_indptr_cpu=override), path, during="plan")
        settle(_override_form(override, indptr), path, during="plan")
    plan = self._plan_pages(
        meta,
        path,
        scheduled_for=None if override is None else override.tolist(),
        num_qo_heads=num_qo_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        head_dim_vo=head_dim,
        q_dtype=compiled["q_data_type"],
        kv_dtype=compiled["kv_data_type"],
        non_blocking=non_blocking,
        in_place=True,
    )
    plan.fault = plan.fault or fault
    plan.compiled = compiled if other else None
    # Blocks on an SM are those of the compiled kernel: on CUDA cores one with a window has others.
    kernels = {"window_left": compiled["window_left"]} if path == "dec" else {}
    if override is not None and plan.planned_indptr != indptr.tolist():
        batch = batch_of(plan, {**arguments, **kernels}, None)
        lengths = device_lengths(indptr.tolist(), last_page_len.tolist(), page_size)
        outcome = UNMEASURED
        if batch is not None:
            outcome = under_schedule(schedule.describe(batch, plan.path), lengths, path)
        settle([_other_override(outcome)], path, during="plan")
    self._keep(plan, arguments, kernels)
    self._keep_scoring(
        causal=False,
        window_left=window_left,
        logits_soft_cap=logits_soft_cap,
        sm_scale=sm_scale,
        pos_encoding_mode=pos_encoding_mode,
        rope_scale=rope_scale,
        rope_theta=rope_theta,
    )


def kernel_of(
    q_dtype: torch.dtype,
    kv_dtype: torch.dtype,
    head_dim: int,
    pos_encoding_mode: str,
    window_left: int,
    logits_soft_cap: float | None,
) -> dict[str, Any]:
    """What a plan chooses its compiled kernel by, under the names of its arguments."""
    return {
        "q_data_type": q_dtype,
        "kv_data_type": kv_dtype,
        "head_dim": head_dim,
        "pos_encoding_mode": pos_encoding_mode,
        "window_left": window_left,
        "logits_soft_cap": logits_soft_cap,
    }


def _is_other(name: str, compiled: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether an argument asks for another kernel: of window and cap only their presence is compiled in, and a kernel with
    a window is one without."""
    before, asked = compiled[name], now[name]
    if name == "window_left":
        return bool(before == -1 and asked != -1)
    elif name == "logits_soft_cap":
        before, asked = caps(before), caps(asked)
    return bool(before != asked)


def _other_types(compiled: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    for name, tensor in (("q_data_type", "q"), ("kv_data_type", "k")):
        if _is_other(name, compiled, now):
            yield Finding(m.FAST_PLAN_TYPE, name, {**_told(name, compiled, now), "tensor": tensor})


def _other_settings(compiled: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """A kernel with a window takes a batch without one as it is; nothing else that it was not compiled for. Of positions
    ROPE_LLAMA was measured."""
    without_cap = not caps(compiled["logits_soft_cap"])
    rope = {compiled["pos_encoding_mode"], now["pos_encoding_mode"]} == {"NONE", "ROPE_LLAMA"}
    stays = compiled["pos_encoding_mode"] == "ROPE_LLAMA"
    for name, mistake, measured in (
        ("head_dim", m.FAST_PLAN_HEAD_DIM, True),
        ("pos_encoding_mode", m.FAST_PLAN_ROPE_STAYS if stays else m.FAST_PLAN_ROPE, rope),
        ("window_left", m.FAST_PLAN_WINDOW, True),
        ("logits_soft_cap", m.FAST_PLAN_CAP if without_cap else m.FAST_PLAN_CAP_LEFT_OUT, True),
    ):
        if _is_other(name, compiled, now):
            yield Finding(mistake, name, _told(name, compiled, now), None if measured else UNMEASURED)


def _told(name: str, compiled: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    return {"value": str(now[name]), "planned": str(compiled[name])}


def _other_override(outcome: Outcome) -> Finding:
    """The schedule is made from this one, the kernel reads the other."""
    return Finding(m.FAST_PLAN_OVERRIDE, "global_override_indptr_cpu", {}, outcome)


def _override_form(given: torch.Tensor, indptr: torch.Tensor) -> Iterator[Finding]:
    """Whether this is a running sum of as many entries as indptr, so that a schedule can be made from it."""
    whole = not (given.is_floating_point() or given.is_complex() or given.dtype == torch.bool)
    alike = given.shape == indptr.shape and whole
    if not alike or bool((given[:1] != 0).any()) or bool((given[1:] < given[:-1]).any()):
        yield _other_override(UNMEASURED)
