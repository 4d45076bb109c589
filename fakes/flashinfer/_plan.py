"""What a plan leaves behind: the arrays as the device will read them, the caller's tensors as they were,
and whose schedule a workspace holds.

On a GPU a plan copies small arrays asynchronously and keeps its schedule in buffers that wrappers may
share. The hazards that follow from this (a tensor changed too early, a schedule overwritten, a stale
schedule under CUDA graphs) are invisible on a CPU unless somebody keeps the books; this file does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from fake_kernels import mistakes_calls as m
from fake_kernels import mistakes_fast_plan as mf
from fake_kernels.checks_paged import check_pages
from fake_kernels.findings import Finding
from fake_kernels.outcomes import UNMEASURED, Outcome, Path
from fake_kernels.paged import as_read, device_lengths, host_lengths, token_slots, told_lengths
from fake_kernels.reference import Request
from fake_kernels.schedule import Batch, PlanInfo, Planner, describe
from fake_kernels.variants import CustomMask

from flashinfer._misread import cut_short, under_schedule

_OWNER = "_fake_kernels_plan"
"""Attribute of a workspace tensor: the Plan whose schedule it holds."""


@dataclass(eq=False)
class Timetable:
    """A planned batch and its planner; what that makes of the batch is worked out when somebody reads it."""

    batch: Batch
    planner: Planner

    @cached_property
    def info(self) -> PlanInfo:
        """How the library's planner splits the batch on an H200."""
        return describe(self.batch, self.planner)


@dataclass
class Plan:
    """One plan of one wrapper.

    Invariants
    - `arrays` are what the device reads: copies, or under CUDA graphs the caller's own buffers, or (`in_place`) the
      caller's tensors themselves; with a
      custom mask also "mask" (uint8 bytes) and "mask_indptr". Without "indices" the KV is ragged: indptr
      counts tokens that lie in order.
    - `sources` pairs each of the caller's tensors with its contents at plan time; empty when the copy
      was a blocking one, because then later changes are none of the plan's business.
    - `unfilled` has the buffers that did not hold the batch at a plan that copies nothing, with what they held.
    - `compiled` is what the kernel was compiled for, under the names of plan's arguments, where this plan asks for another
      head_dim, window or cap (a fast plan in faithful mode); else None.
    - `planned_indptr` is what the schedule was made from; `info` tells that schedule, None where it is unknown.
    - `fault` is what a launch acts out in faithful mode; always None in strict mode.
    - `has_run` only ever goes from False to True.
    """

    path: Path
    batch: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    head_dim_vo: int
    page_size: int
    q_dtype: torch.dtype
    kv_dtype: torch.dtype
    cache_names: tuple[str, str]
    names: dict[str, str]
    arrays: dict[str, torch.Tensor]
    sources: dict[str, tuple[torch.Tensor, torch.Tensor]]
    planned_indptr: list[int]
    planned_lengths: list[int]
    graph: bool
    non_blocking: bool
    fault: Outcome | None
    has_run: bool = False
    in_place: bool = False
    unfilled: dict[str, torch.Tensor] = field(default_factory=dict)
    compiled: dict[str, Any] | None = None
    timetable: Timetable | None = field(default=None, repr=False)
    _walked: tuple[tuple[int, int], list[torch.Tensor], list[torch.Tensor]] | None = field(
        default=None, repr=False
    )

    @property
    def info(self) -> PlanInfo | None:
        """The schedule, or None where there is none."""
        return None if self.timetable is None else self.timetable.info

    @property
    def rows(self) -> int:
        """Rows of q that this plan is for."""
        return int(self.arrays["qo"][-1]) if "qo" in self.arrays else self.batch

    def changes(self) -> Iterator[Finding]:
        """Tensors of the caller, and graph buffers, that are no longer what was planned, or never were."""
        for key, held in self.unfilled.items():
            if torch.equal(self.arrays[key], held):
                yield Finding(mf.BUFFER_NOT_FILLED, f"{self.names[key]}_buffer")
        for argument, (tensor, before) in self.sources.items():
            if tensor.shape != before.shape or not torch.equal(tensor, before):
                if self.in_place:
                    # Only other pages were measured; other lengths meet a schedule that isn't theirs.
                    outcome = None if argument == self.names["indices"] else UNMEASURED
                    yield Finding(mf.CHANGED_AFTER_FAST_PLAN, argument, {}, outcome)
                else:
                    yield Finding(m.CHANGED_AFTER_PLAN, argument)
        if self.graph:
            now = self.arrays["indptr"].tolist()
            for i, (was, value) in enumerate(zip(self.planned_indptr, now, strict=False)):
                if was != value:
                    params = {"position": i, "value": value, "planned": was}
                    outcome = UNMEASURED
                    if "indices" in self.arrays:
                        lengths = device_lengths(now, self.arrays["last"].tolist(), self.page_size)
                        outcome = under_schedule(self.info, lengths, self.path)
                    yield Finding(m.STALE_PLAN, f"{self.names['indptr']}_buffer", params, outcome)
                    return

    @property
    def masks(self) -> tuple[CustomMask, ...]:
        """The custom mask as a part of the variant, if there is one."""
        if "mask" not in self.arrays:
            return ()
        return (CustomMask(self.arrays["mask"], self.arrays["mask_indptr"].tolist()),)

    def take_changes(self) -> None:
        """Let the device see what the caller's tensors hold now: the copy that came too late."""
        for key, argument in self.names.items():
            if argument in self.sources and key in self.arrays:
                tensor, _ = self.sources[argument]
                now = tensor.flatten() if key == "mask" else as_read(tensor, len(self.arrays[key]))
                self.arrays[key][: len(now)].copy_(now)
        self._walked = None

    def page_findings(self, num_pages: int) -> Iterator[Finding]:
        """Page numbers that a pool of `num_pages` doesn't have."""
        if "indices" not in self.arrays:
            return
        used, name = int(self.arrays["indptr"][-1]), self.names.get("indices", "indices")
        yield from check_pages(self.arrays["indices"], used, num_pages, name)

    def requests(self, page_size: int, num_pages: int) -> list[Request]:
        """Rows and KV slots of every request, read as the device does.

        fa3 goes by the lengths that plan computed; the other kernels by the device's arrays and the
        page size of the cache. Kept until the arrays or the cache's shape change.
        """
        if "indices" not in self.arrays:
            sums = self.arrays["indptr"].clamp(0, num_pages).tolist()
            return self._with_rows([torch.arange(a, max(a, b)) for a, b in pairwise(sums)])
        key = (page_size, num_pages)
        watched = [self.arrays[name] for name in ("indptr", "indices", "last")]
        if self._walked is not None and self._walked[0] == key:
            _, before, slots = self._walked
            if not (self.graph or self.in_place) or all(
                torch.equal(a, b) for a, b in zip(watched, before, strict=True)
            ):
                return self._with_rows(slots)
        indptr, last = self.arrays["indptr"].tolist(), self.arrays["last"].tolist()[: self.batch]
        lengths = self.planned_lengths if self.path == "fa3" else device_lengths(indptr, last, page_size)
        if self.path != "fa3" and indptr != self.planned_indptr:
            lengths = cut_short(self.info, lengths)
        used = self.arrays["indices"]
        slots = [token_slots(indptr[i], lengths[i], used, page_size, num_pages) for i in range(self.batch)]
        kept = [tensor.clone() for tensor in watched] if self.graph or self.in_place else []
        self._walked = (key, kept, slots)
        return self._with_rows(slots)

    def requests_of(self, other: Plan, page_size: int, num_pages: int) -> list[Request]:
        """`requests` under the schedule of another plan.

        fa3 finds the lengths and the starts of requests in the schedule. The other kernels find there which request a
        block computes: measured were more blocks for the other batch's first request than this plan launches, so that
        the first request was right and the others were not computed; and so it is here.
        """
        requests = self.requests(page_size, num_pages)
        if other.path == self.path and other._divides() == self._divides():
            return requests
        if self.path != "fa3" or not other.planned_lengths:
            return requests[:1]
        of = [min(i, other.batch - 1) for i in range(self.batch)]
        starts, lengths = other.planned_indptr, other.planned_lengths
        used = self.arrays["indices"]
        return self._with_rows([token_slots(starts[j], lengths[j], used, page_size, num_pages) for j in of])

    def _divides(self) -> tuple[object, ...]:
        rows = self.arrays["qo"].tolist() if "qo" in self.arrays else None
        return rows, self.planned_indptr, self.planned_lengths, self.num_qo_heads, self.num_kv_heads

    def _with_rows(self, slots: list[torch.Tensor]) -> list[Request]:
        qo = self.arrays["qo"].tolist() if "qo" in self.arrays else range(self.batch + 1)
        return [Request(qo[i], qo[i + 1], slots[i]) for i in range(self.batch)]


def kept_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a plan as they are now, for who looks later: tensors are copied, also those in lists."""

    def kept(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [kept(one) for one in value]
        return value.clone() if isinstance(value, torch.Tensor) else value

    return {name: kept(value) for name, value in arguments.items()}


def own_workspace(buffer: torch.Tensor, plan: Plan) -> None:
    """Write `plan`'s schedule into `buffer`: whatever it held is gone."""
    setattr(buffer, _OWNER, plan)


def owner(buffer: torch.Tensor) -> Plan | None:
    """The plan whose schedule `buffer` holds, None before the first."""
    found = getattr(buffer, _OWNER, None)
    return found if isinstance(found, Plan) else None


def device_arrays(
    given: dict[str, torch.Tensor],
    batch: int,
    buffers: dict[str, torch.Tensor] | None,
    fault: Outcome | None,
) -> dict[str, torch.Tensor]:
    """The int32 arrays that kernels of this plan read, from the caller's by key: indptr, indices, last, qo.

    buffers: under CUDA graphs the caller's buffers by key; they receive the copy and are read from then on.
    """
    if buffers is not None:
        for key, tensor in given.items():
            if key in buffers:
                target = buffers[key][: len(tensor)] if key == "indices" else buffers[key]
                target.copy_(tensor)
        return {key: _int32(buffers.get(key, tensor)) for key, tensor in given.items()}
    if fault is None:
        arrays = {key: tensor.to(torch.int32).clone() for key, tensor in given.items()}
        return _as_long(arrays, given, batch)
    sizes = {"indptr": batch + 1, "last": batch, "qo": batch + 1}
    return {key: as_read(tensor, sizes.get(key, len(tensor))) for key, tensor in given.items()}


def _int32(buffer: torch.Tensor) -> torch.Tensor:
    """What kernels see of a buffer for CUDA graphs: its memory as int32 values."""
    return buffer.view(torch.int32) if buffer.dtype == torch.int64 and buffer.is_contiguous() else buffer


def _as_long(
    arrays: dict[str, torch.Tensor], given: dict[str, torch.Tensor], batch: int
) -> dict[str, torch.Tensor]:
    """Arrays of a batch that were taken although one is too short (faithful mode): what is missing of the page numbers lies
    behind them, requests that only qo_indptr has are empty ones."""
    for key, size in (("indptr", batch + 1), ("last", batch)):
        if key in arrays and 0 < len(arrays[key]) < size:
            filler = arrays[key][-1:] if key == "indptr" else arrays[key].new_zeros(1)
            arrays[key] = torch.cat([arrays[key], filler.expand(size - len(arrays[key]))])
    if "indices" in arrays and len(arrays["indices"]) < int(arrays["indptr"][-1]):
        arrays["indices"] = as_read(given["indices"], int(arrays["indptr"][-1]))
    return arrays


def arrays_in_place(
    given: dict[str, torch.Tensor], buffers: dict[str, torch.Tensor] | None
) -> dict[str, torch.Tensor]:
    """What kernels read after a plan that copies nothing: the caller's buffers, or the given tensors themselves,
    whatever they are, as int32."""
    if buffers is not None:
        return {key: _int32(buffers.get(key, tensor)) for key, tensor in given.items()}
    return {
        key: tensor
        if tensor.dtype == torch.int32 and tensor.is_contiguous()
        else as_read(tensor, len(tensor))
        for key, tensor in given.items()
    }


def unfilled_buffers(
    arrays: dict[str, torch.Tensor], given: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Those of `arrays` that do not begin with what was given, with a copy of what they hold."""
    used = {**{key: len(tensor) for key, tensor in given.items()}, "indices": int(given["indptr"][-1])}
    return {
        key: held.clone()
        for key, held in arrays.items()
        if not torch.equal(held[: used[key]].long(), given[key][: used[key]].long())
    }


def planner_lengths(
    arrays: dict[str, torch.Tensor], page_size: int, batch: int, seq_lens: torch.Tensor | None
) -> list[int]:
    """KV lengths as plan computes them on the host: seq_lens if given, else from indptr and last_page_len."""
    if seq_lens is not None:
        lengths = told_lengths(seq_lens)
        return (lengths + [0] * batch)[:batch]
    lengths = host_lengths(arrays["indptr"].tolist(), arrays["last"].tolist()[:batch], page_size)
    return [max(0, n) for n in lengths]
