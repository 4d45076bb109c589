"""How a plan splits a batch: the schedules of flashinfer's planners, described and never executed.

A fake runs a batch request by request and needs no schedule. A reader does: which block gets what, what is split and
merged, how many bytes of workspace that takes and so when a workspace is too small. Everything here is computed from
plain numbers (`Batch`), for an H200, as the library's planner does it (`PlanInfo.vector` and `PlanInfo.arrays` are what
it returns and writes); tools/measure_plans.py holds this to the library on the GPU.
"""

from __future__ import annotations

from fake_kernels.schedule import decode, fa2, fa3, persistent
from fake_kernels.schedule.info import Batch, PlanInfo, Planner, WorkItem
from fake_kernels.schedule.layout import Layout, Overflow


def describe(batch: Batch, path: Planner) -> PlanInfo:
    """The schedule of a batch. ValueError with the library's message where its planner refuses the batch."""
    if path == "dec":
        return decode.describe(batch)
    if path == "fa3":
        return fa3.describe(batch)
    if path == "persistent":
        return persistent.describe(batch)
    return fa2.describe(batch, path)


def workspaces(batch: Batch, path: Planner) -> Layout | None:
    """What a plan takes from the two workspaces, without the items; None where it is unknown.

    ValueError as `describe`.
    """
    if path == "dec":
        found = decode.decide(batch)
        return None if isinstance(found, str) else found.layout
    if path == "fa3":
        return fa3.decide(batch)[0]
    if path == "persistent":
        return persistent.decide(batch).layout
    return fa2.decide(batch).layout


__all__ = ["Batch", "Layout", "Overflow", "PlanInfo", "Planner", "WorkItem", "describe", "workspaces"]
