"""The GPU that schedules are made for: an H200, and how many blocks of a kernel one of its SMs holds.

The CUDA-core decode planner asks the CUDA runtime for that number (scheduler.cuh,
BatchDecodeWithPagedKVCacheWorkEstimationDispatched), which depends on the registers of the compiled kernel
and can't be computed here. So it was measured (tools/measure_plans.py, on an H200 with flashinfer 0.7.2.post1 compiled on
the spot); outside the table it is unknown, and another compiler may give a kernel other registers.
"""

from __future__ import annotations

NUM_SMS = 132
"""Streaming multiprocessors of an H200."""

FA2_BLOCKS_PER_SM = 2
"""A constant in the fa2 planner, whatever the kernel (scheduler.cuh, PrefillPlanImpl)."""

GROUPS = (1, 2, 3, 4, 6, 8, 16)
"""Query heads a KV head that CUDA-core decode is built for (utils.cuh, DISPATCH_GQA_GROUP_SIZE)."""

DECODE_BLOCKS_PER_SM: dict[tuple[str, int, bool, bool], tuple[int, ...]] = {
    ("float16", 128, False, False): (6, 9, 9, 9, 8, 8, 4),
    ("float16", 128, False, True): (6, 9, 9, 9, 8, 8, 3),
    ("float16", 128, True, False): (6, 8, 8, 8, 9, 8, 3),
    ("float16", 128, True, True): (6, 8, 8, 8, 8, 8, 3),
    ("bfloat16", 128, False, False): (6, 9, 9, 9, 8, 9, 3),
    ("bfloat16", 128, False, True): (6, 9, 9, 9, 9, 9, 3),
    ("bfloat16", 128, True, False): (6, 8, 8, 9, 9, 9, 3),
    ("bfloat16", 128, True, True): (6, 8, 8, 8, 9, 9, 3),
    ("float16", 64, False, False): (6, 9, 9, 9, 9, 9, 8),
    ("float16", 64, False, True): (6, 9, 9, 8, 8, 8, 7),
    ("float16", 64, True, False): (6, 8, 8, 9, 9, 8, 7),
    ("float16", 64, True, True): (6, 8, 8, 8, 8, 8, 7),
    ("bfloat16", 64, False, False): (6, 9, 9, 9, 9, 9, 7),
    ("bfloat16", 64, False, True): (6, 9, 9, 9, 8, 9, 7),
    ("bfloat16", 64, True, False): (6, 8, 8, 9, 8, 8, 7),
    ("bfloat16", 64, True, True): (6, 8, 9, 8, 8, 7, 7),
}
"""By (type, head_dim, sliding window, soft cap): blocks a SM for each of `GROUPS`."""

STANDS_FOR = {"float32": "float16"}
"""The real kernels have no float32: its schedule is that of a 2-byte type."""


def decode_blocks_per_sm(dtype: str, head_dim: int, group: int, window: bool, soft_cap: bool) -> int | None:
    """Blocks of the CUDA-core decode kernel on one SM, None where nobody measured."""
    row = DECODE_BLOCKS_PER_SM.get((STANDS_FOR.get(dtype, dtype), head_dim, window, soft_cap))
    return row[GROUPS.index(group)] if row is not None and group in GROUPS else None
