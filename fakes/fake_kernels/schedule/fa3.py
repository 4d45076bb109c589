"""fa3 prefill: persistent CTAs, one for each SM; tiles are costed and given to the CTA with the least work so far.

KV is never split, so nothing is merged and the float workspace stays untouched.
Source: include/flashinfer/attention/scheduler.cuh (PrefillSM90Plan), attention/heap.h.
"""

from __future__ import annotations

from fake_kernels.schedule.gpu import NUM_SMS
from fake_kernels.schedule.info import Batch, PlanInfo, WorkItem
from fake_kernels.schedule.layout import Layout
from fake_kernels.schedule.order import CostHeap, sort

_ONE_SCHEDULE_ABOVE = 4096
_ARRAYS = (
    ("qo_tile_indices", "qo_tile_indices"),
    ("qo_indptr", "qo_offset"),
    ("kv_indptr", "kv_offset"),
    ("qo_len", "qo_len"),
    ("kv_len", "kv_len"),
    ("head_indices", "head_indices"),
    ("work_indptr", "work_indptr"),
    ("batch_indices", "batch_indices"),
)


def query_tile(head_dim_vo: int) -> int:
    """Rows of one head in a tile (scheduler.cuh, PrefillSM90Plan)."""
    return 192 if head_dim_vo == 64 else 128


def decide(batch: Batch) -> tuple[Layout, tuple[int, ...], bool]:
    """Workspaces, the offsets of the eight arrays, and whether one schedule serves all heads."""
    tile = query_tile(batch.vo)
    most = -(-batch.rows // tile) + batch.size - 1
    shared = most > _ONE_SCHEDULE_ABOVE
    works = most if batch.cuda_graph else sum(-(-n // tile) for n in batch.qo_lens)
    if not shared:
        works *= batch.num_qo_heads
    layout = Layout()
    offsets = tuple(
        layout.take(
            "int", 4 * (NUM_SMS + 1 if name == "work_indptr" else works), f"batch_prefill_sm90_{told}"
        )
        for name, told in _ARRAYS
    )
    return layout, offsets, shared


def describe(batch: Batch) -> PlanInfo:
    """The whole schedule of a batch."""
    layout, offsets, shared = decide(batch)
    tile = query_tile(batch.vo)
    order = list(range(batch.size))
    sort(order, lambda a, b: batch.kv_lens[a] > batch.kv_lens[b])
    heap = CostHeap(NUM_SMS)
    given: list[list[WorkItem]] = [[] for _ in range(NUM_SMS)]
    for head in range(1 if shared else batch.num_qo_heads):
        for i in order:
            rows, kv_len = batch.qo_lens[i], batch.kv_lens[i]
            tiles = -(-rows // tile)
            for q_tile in range(tiles - 1, -1, -1):
                end = causal_end(rows, kv_len, q_tile, tile, tiles, 1) if batch.causal else kv_len
                cta = heap.take(tile, end)
                span = (q_tile * tile, min((q_tile + 1) * tile, rows))
                given[cta].append(WorkItem(i, q_tile, span, (0, end), None if shared else head, cta))
    work = [item for items in given for item in items]
    q_first, kv_first = batch.starts(batch.qo_lens), batch.starts(batch.kv_pages)
    values: dict[str, list[int]] = {
        "qo_tile_indices": [item.q_tile for item in work],
        "qo_indptr": [q_first[item.request] for item in work],
        "kv_indptr": [kv_first[item.request] for item in work],
        "qo_len": [batch.qo_lens[item.request] for item in work],
        "kv_len": [batch.kv_lens[item.request] for item in work],
        "head_indices": [item.head or 0 for item in work],
        "work_indptr": _running([len(items) for items in given]),
        "batch_indices": [item.request for item in work],
    }
    arrays = tuple((name, at, tuple(values[name])) for (name, _), at in zip(_ARRAYS, offsets, strict=True))
    return PlanInfo(
        path="fa3",
        num_sms=NUM_SMS,
        blocks_per_sm=1,
        q_tile=tile,
        kv_chunk=None,
        split_kv=False,
        merged_states=(0,) * batch.size,
        padded_batch_size=NUM_SMS,
        float_bytes=0,
        int_bytes=layout.used("int"),
        work=tuple(work),
        vector=(*offsets, int(shared)),
        arrays=arrays,
        steps=(
            "requests by falling KV length (scheduler.cuh, PrefillSM90Plan)",
            f"tiles of {tile} rows, each head by itself; a tile costs 2 * {tile} + its KV (scheduler.cuh, cost_function)",
            f"{len(work)} tiles to {NUM_SMS} CTAs, each to the one with the least cost so far (heap.h, MinHeap)"
            + (", the same for every head" if shared else ""),
        ),
    )


def causal_end(rows: int, kv_len: int, q_tile: int, tile: int, tiles: int, group: int) -> int:
    """KV that the rows of a tile see under a causal mask (scheduler.cuh, packed_causal_kv_end)."""
    if q_tile + 1 == tiles:
        return kv_len
    return max(min(kv_len - rows + -(-((q_tile + 1) * tile) // group), kv_len), 0)


def _running(counts: list[int]) -> list[int]:
    total = [0]
    for count in counts:
        total.append(total[-1] + count)
    return total
