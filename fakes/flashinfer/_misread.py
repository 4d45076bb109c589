"""What the kernels make of tensors and lengths that are not those of the plan: which rows they compute, how much of the KV
they see. Strict mode never comes here with anything wrong; faithful mode computes what was measured on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from fake_kernels.outcomes import GARBAGE, HANGS, HARMLESS, UNMEASURED, Outcome
from fake_kernels.reference import Request
from fake_kernels.schedule import PlanInfo
from fake_kernels.schedule.fa2 import query_tile

if TYPE_CHECKING:
    from flashinfer._plan import Plan


def cache_fits(plan: Plan, k_cache: torch.Tensor, v_cache: torch.Tensor) -> bool:
    """Whether K and V of a cache go together and have the planned head_dims; heads and pages may be others."""
    dims = (k_cache.shape[-1], v_cache.shape[-1])
    alike = k_cache.shape[:-1] == v_cache.shape[:-1] and k_cache.itemsize == v_cache.itemsize
    return alike and dims == (plan.head_dim, plan.head_dim_vo)


def chunks_of(info: PlanInfo | None, batch: int) -> list[tuple[int, int]] | None:
    """For each request, chunks of KV that a schedule has and tokens of a chunk; None where a block takes all of a request,
    however long."""
    if info is None or not info.split_kv or info.kv_chunk is None:
        return None
    starts: list[set[int]] = [set() for _ in range(batch)]
    for item in info.work:
        if item.request < batch:
            starts[item.request].add(item.kv[0])
    return [(max(1, len(found)), info.kv_chunk) for found in starts]


def under_schedule(info: PlanInfo | None, lengths: Sequence[int], path: str) -> Outcome:
    """What becomes of requests of these lengths under a schedule that was made for others."""
    if info is None or info.split_kv is None or path not in ("dec", "tc"):
        return UNMEASURED
    chunks = chunks_of(info, len(lengths)) or []
    told = list(zip(chunks, lengths, strict=False))
    if path == "dec" and any(count > 1 and n <= (count - 1) * size for (count, size), n in told):
        return HANGS
    return GARBAGE if any(n > count * size for (count, size), n in told) else HARMLESS


def cut_short(info: PlanInfo | None, lengths: Sequence[int]) -> list[int]:
    """These lengths as far as the chunks of the schedule reach."""
    chunks = chunks_of(info, len(lengths))
    if chunks is None:
        return list(lengths)
    return [min(n, count * size) for (count, size), n in zip(chunks, lengths, strict=True)]


def rows_left_out(plan: Plan, group: int) -> list[tuple[slice, int, int]]:
    """Rows of q that the tiles of a plan don't reach when `group` query heads share a KV head and not the planned number:
    for each request its rows, the place of its first row in packed rows (0), and how many packed rows are reached.

    tc and fa2 cut rows times group into tiles at plan. fa3 and CUDA cores don't pack.
    """
    if plan.path not in ("tc", "fa2") or group < 1:
        return []
    planned = plan.num_qo_heads // plan.num_kv_heads
    sums = plan.arrays["qo"].tolist() if "qo" in plan.arrays else list(range(plan.batch + 1))
    rows = [sums[i + 1] - sums[i] for i in range(plan.batch)]
    tile = query_tile(sum(rows) * planned // max(1, plan.batch), plan.head_dim, plan.head_dim_vo)
    found = []
    for i, n in enumerate(rows):
        reached = -(-n * planned // tile) * tile
        if n * group > reached:
            found.append((slice(sums[i], sums[i + 1]), n, reached))
    return found


def leave_out(plan: Plan, q_heads: int, kv_heads: int, out: torch.Tensor, lse: torch.Tensor | None) -> None:
    """Clear what a kernel doesn't write of a result whose heads are not the planned ones. What stands there on a GPU is
    whatever stood there before; here it is 0, and -inf in the LSE."""
    if q_heads == plan.num_qo_heads and kv_heads == plan.num_kv_heads:
        return
    if plan.path == "fa3":  # work is listed by the query heads of the plan
        out[:, plan.num_qo_heads :] = 0
        if lse is not None:
            lse[:, plan.num_qo_heads :] = -math.inf
    group = q_heads // kv_heads
    for rows, n, reached in rows_left_out(plan, group):
        packed = torch.arange(n).unsqueeze(1) * group + torch.arange(q_heads) % group
        out[rows][packed >= reached] = 0
        if lse is not None:
            lse[rows][packed >= reached] = -math.inf


def shift_rows(plan: Plan, out: torch.Tensor, lse: torch.Tensor | None) -> None:
    """Move results to where fa2 writes them: from row 0 on, whatever qo_indptr begins with. fa3 writes them to the rows they
    belong to."""
    first = int(plan.arrays["qo"][0]) if "qo" in plan.arrays else 0
    if plan.path != "fa2" or first <= 0:
        return
    for result, rest in ((out, 0.0), (lse, -math.inf)):
        if result is not None:
            moved = result[first:].clone()
            result.fill_(rest)
            result[: len(moved)] = moved


def at_pools_start(requests: Sequence[Request]) -> list[Request]:
    """Requests all of whose tokens are the first one of the pool: CUDA-core decode with more rows than planned takes an
    entry behind indptr for the number of pages, and pages beyond that number are read at offset 0."""
    return [Request(r.start, r.stop, torch.zeros_like(r.slots)) for r in requests]
