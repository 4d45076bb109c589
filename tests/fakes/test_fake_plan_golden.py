"""Our schedules against what the real planners returned on an H200: `golden/plans.json`, from tools/measure_plans.py."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from fake_kernels import schedule

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "golden" / "plans.json").read_text())


def batch_of(case: dict[str, Any]) -> schedule.Batch:
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in case["batch"].items()}
    return schedule.Batch(**given)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2", "fa3", "persistent"])
def test_plans_are_those_of_the_real_planner(path: schedule.Planner) -> None:
    mine = [case for case in CASES if case["path"] == path]
    assert len(mine) >= 9
    for case in mine:
        info = schedule.describe(batch_of(case), path)
        assert list(info.vector) == case["vector"]
        if case["bytes"] is not None:
            assert [info.float_bytes, info.int_bytes] == case["bytes"]


def test_arrays_are_those_that_were_found_in_the_real_workspace() -> None:
    """They were compared number by number on the GPU; here a checksum of them is kept."""
    for case in CASES:
        told = 0
        for _, _, values in schedule.describe(batch_of(case), case["path"]).arrays:
            told = zlib.crc32(struct.pack(f"<{len(values)}q", *values), told)
        assert told == case["arrays"]


def test_both_kinds_of_plan_are_among_them() -> None:
    for path in ("dec", "tc", "fa2"):
        split = {case["vector"][-1] for case in CASES if case["path"] == path}
        graphs = {bool(case["batch"].get("cuda_graph")) for case in CASES if case["path"] == path}
        assert split == {0, 1}
        assert graphs == {False, True}
