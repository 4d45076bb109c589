"""Between a wrapper and `fake_kernels.schedule`: the batch of a plan in plain numbers, whether the workspaces are large
enough for it, and `plan_info`, worked out when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from fake_kernels import schedule
from fake_kernels.findings import Finding, settle
from fake_kernels.mistakes_schedule import PLANNER_REFUSES, WORKSPACE_TOO_SMALL
from fake_kernels.outcomes import Path, raises, verbatim
from fake_kernels.paged import device_lengths
from fake_kernels.schedule import Batch, PlanInfo

from flashinfer._options import caps
from flashinfer._plan import Plan, Timetable

_WHERE = "Error in function 'aligned_alloc' at .../allocator.h:71: "
"""How the library's messages begin (exception.h); without the folder that it was built in."""


class Scheduled:
    """The part of a wrapper that knows the schedule of its last plan."""

    _timetable: Timetable | None = None

    @property
    def plan_info(self) -> PlanInfo | None:
        """How the library's planner splits the batch of the last plan on an H200; see `PlanInfo`.

        None before the first plan, and in faithful mode after a plan of wrong metadata, whose schedule nobody measured.
        Not part of the real package's interface.
        """
        return None if self._timetable is None else self._timetable.info

    def _schedule(
        self,
        batch: Batch | None,
        planner: schedule.Planner,
        path: Path,
        buffers: Mapping[str, torch.Tensor],
    ) -> None:
        """Remember the batch of a plan if the workspaces have room for it.

        buffers: the float and the int workspace, each under the name that its owner knows it by, in this order.
        RuntimeError with the library's message if one is too small. Where the bytes are unknown nothing is checked.
        """
        if batch is not None:
            settle(_findings(batch, planner, buffers), path, during="plan")
        self._timetable = None if batch is None else Timetable(batch, planner)


def batch_of(
    plan: Plan, arguments: Mapping[str, Any], max_rows: int | None, built_for: str = ""
) -> Batch | None:
    """The batch of a plan as a planner sees it; None for a plan that is wrong (faithful mode).

    arguments: what the caller gave to plan, by the library's names. max_rows: under CUDA graphs the most rows of q
    that plans of this wrapper may have. built_for: see `Batch`.
    """
    if plan.fault is not None or plan.compiled is not None:
        return None
    indptr = plan.planned_indptr
    pages = tuple(indptr[i + 1] - indptr[i] for i in range(plan.batch))
    rows = plan.arrays["qo"].tolist() if "qo" in plan.arrays else None
    per_request = arguments.get("q_len_per_req") or 1
    qo_lens = (per_request,) * plan.batch
    if rows is not None:
        qo_lens = tuple(rows[i + 1] - rows[i] for i in range(plan.batch))
    lengths = plan.planned_lengths
    if plan.path != "fa3":
        lengths = device_lengths(indptr, plan.arrays["last"].tolist()[: plan.batch], plan.page_size)
    uniform = arguments.get("uniform_q_len") or (per_request if per_request > 1 else 0)
    if any(n != uniform for n in qo_lens):
        # A promise that the batch doesn't keep is dropped with a warning (prefill.py, _resolve_uniform_q_len).
        uniform = 0
    return Batch(
        qo_lens=qo_lens,
        kv_pages=pages,
        kv_lens=tuple(lengths),
        num_qo_heads=plan.num_qo_heads,
        num_kv_heads=plan.num_kv_heads,
        head_dim=plan.head_dim,
        head_dim_vo=plan.head_dim_vo,
        page_size=plan.page_size,
        dtype=str(plan.q_dtype).removeprefix("torch."),
        causal=bool(arguments.get("causal", False)),
        window_left=arguments.get("window_left", -1),
        soft_cap=caps(arguments.get("logits_soft_cap")),
        cuda_graph=plan.graph,
        max_rows=max_rows if plan.graph else None,
        fixed_split_pages=arguments.get("fixed_split_size") or -1,
        disable_split_kv=bool(arguments.get("disable_split_kv", False)),
        uniform_q_len=uniform,
        built_for=built_for or _positions(arguments),
    )


def _positions(arguments: Mapping[str, Any]) -> str:
    mode = arguments.get("pos_encoding_mode", "NONE")
    return "" if mode == "NONE" else str(mode)


def _findings(batch: Batch, planner: schedule.Planner, buffers: Mapping[str, torch.Tensor]) -> list[Finding]:
    try:
        layout = schedule.workspaces(batch, planner)
    except ValueError as refusal:
        outcome = raises(RuntimeError, verbatim(str(refusal)))
        argument = "fixed_split_size" if batch.fixed_split_pages > 0 else "num_qo_heads"
        return [Finding(PLANNER_REFUSES, argument, {"message": str(refusal)}, outcome)]
    if layout is None:
        return []
    # By the first dimension: in faithful mode a workspace may have more of them, which the library doesn't count.
    sizes = [buffer.shape[0] * buffer.element_size() for buffer in buffers.values()]
    overflow = layout.overflow(*sizes)
    if overflow is None:
        return []
    at = 0 if overflow.piece.buffer == "float" else 1
    params = {"bytes": sizes[at], "needed": layout.used(overflow.piece.buffer), "piece": overflow.piece.name}
    outcome = raises(RuntimeError, _WHERE + overflow.message())
    return [Finding(WORKSPACE_TOO_SMALL, list(buffers)[at], params, outcome)]
