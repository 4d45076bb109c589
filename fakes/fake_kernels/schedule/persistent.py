"""BatchAttention: one persistent kernel for prefill and decode requests together.

Requests of more than 16 packed rows are cut into tiles of 128, the others into tiles of 16; KV into chunks of a
length that comes from all the work; each tile, chunk and KV head goes to the CTA with the least cost so far. The
workspaces are taken for the worst case, whatever the batch.
Source: include/flashinfer/attention/scheduler.cuh (TwoStageHolisticPlan), attention/heap.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from fake_kernels.schedule.fa3 import causal_end
from fake_kernels.schedule.gpu import NUM_SMS
from fake_kernels.schedule.info import Batch, PlanInfo, WorkItem
from fake_kernels.schedule.layout import Layout
from fake_kernels.schedule.order import CostHeap

TILES = (128, 16)
"""Packed rows of a tile, for long requests and for short ones."""

_MOST_WORKS = 65536
_TASK_ARRAYS = (
    "q_indptr",
    "kv_indptr",
    "partial_indptr",
    "q_len",
    "kv_len",
    "q_start",
    "kv_start",
    "kv_end",
    "kv_head_idx",
    "work_indptr",
)


@dataclass(frozen=True)
class Decision:
    """What is known before any item is written down: CTAs, KV tokens of a chunk for each task, the most rows of
    partial states, workspaces and the offsets in the order of the plan's vector."""

    ctas: int
    chunks: tuple[int, int]
    most_splits: int
    layout: Layout
    offsets: tuple[int, ...]


def decide(batch: Batch) -> Decision:
    """Chunk lengths and workspaces.

    ValueError with the library's message where a batch is too large for it; where the tiles alone are too many, the
    number in it is without the chunks.
    """
    ctas = NUM_SMS * (1 if batch.vo >= 256 else 2)
    for task, tile in enumerate(TILES):
        works = sum(-(-n * batch.group // tile) for n in batch.qo_lens if _task(n * batch.group) == task)
        if works * batch.num_kv_heads > _MOST_WORKS:
            raise _too_many(works * batch.num_kv_heads)
    spans = _tiles(batch)
    total = sum(end for *_, end in spans)
    chunks = _chunk_lengths(total, batch.num_kv_heads, ctas)
    works, merged = [0, 0], 1
    for task, _, _, rows, end in spans:
        count = -(-end // chunks[task])
        works[task] += max(count, 1) * batch.num_kv_heads
        merged += rows if count > 1 else 0
    layout, offsets = Layout(), []
    for task in range(2):
        if works[task] > _MOST_WORKS:
            raise _too_many(works[task])
        offsets += [layout.take("int", 4 * _MOST_WORKS, name) for name in _TASK_ARRAYS]
    length = layout.take("int", 8, "len_kv_chunk")
    most_splits = 4 * ctas * sum(TILES)
    if merged > most_splits:
        raise ValueError(
            f"Number of kv splits {merged} exceeds max buffer size {most_splits}. Please increase the threshold."
        )
    indptr = layout.take("int", 4 * most_splits, "merge_indptr")
    indices = layout.take("int", 4 * most_splits, "merge_o_indices")
    count = layout.take("int", 4, "num_qo_len_offset")
    heads = batch.num_kv_heads
    o = layout.take("float", most_splits * 2 * batch.vo * heads, "holistic_partial_o")
    lse = layout.take("float", most_splits * 4 * heads, "holistic_partial_lse")
    return Decision(ctas, chunks, most_splits, layout, (*offsets, length, o, lse, indptr, indices, count))


def describe(batch: Batch) -> PlanInfo:
    """The whole schedule of a batch."""
    found = decide(batch)
    heap = CostHeap(found.ctas)
    q_first, kv_first = batch.starts(batch.qo_lens), batch.starts(batch.kv_pages)
    given: tuple[list[list[WorkItem]], list[list[WorkItem]]] = (
        [[] for _ in range(found.ctas)],
        [[] for _ in range(found.ctas)],
    )
    partial_of: dict[tuple[int, int], int] = {}
    states = [0] * batch.size
    merge_indptr, merge_o, partial = [0], [], 0
    heads, group = batch.num_kv_heads, batch.group
    for task, i, q_tile, rows, end in _tiles(batch):
        limit, tile = found.chunks[task], TILES[task]
        count = max(-(-end // limit), 1)
        span = (q_tile * tile, q_tile * tile + rows)
        partial_of[i, q_tile] = partial
        for first in range(0, max(end, 1), limit):
            kv = (first, min(first + limit, end))
            for head in range(heads):
                cta = heap.take(tile, kv[1] - kv[0])
                given[task][cta].append(WorkItem(i, q_tile, span, kv, head, cta))
        if end > limit:
            for packed in range(*span):
                merge_indptr.append(merge_indptr[-1] + count)
                row, head = divmod(packed, group)
                merge_o.append((q_first[i] + row) * heads * group + head)
            partial += rows * count
            states[i] += rows * count * heads
    arrays: list[tuple[str, int, tuple[int, ...]]] = []
    for task in range(2):
        work = [item for items in given[task] for item in items]
        indptr = [0]
        for items in given[task]:
            indptr.append(indptr[-1] + len(items))
        values = (
            [q_first[item.request] for item in work],
            [kv_first[item.request] for item in work],
            [partial_of[item.request, item.q_tile] for item in work],
            [batch.qo_lens[item.request] for item in work],
            [batch.kv_lens[item.request] for item in work],
            [item.rows[0] for item in work],
            [item.kv[0] for item in work],
            [item.kv[1] for item in work],
            [item.head or 0 for item in work],
            indptr,
        )
        at = found.offsets[10 * task : 10 * task + 10]
        named = zip(_TASK_ARRAYS, at, values, strict=True)
        arrays += [(f"{name}.{TILES[task]}", offset, tuple(told)) for name, offset, told in named]
    length, _, _, indptr_at, o_at, count_at = found.offsets[20:]
    arrays += [
        ("len_kv_chunk", length, found.chunks),
        ("merge_indptr", indptr_at, tuple(merge_indptr)),
        ("merge_o_indices", o_at, tuple(merge_o)),
        ("num_qo_len", count_at, (len(merge_indptr) - 1,)),
    ]
    by_cta = [given[task][cta] for cta in range(found.ctas) for task in range(2)]
    split = bool(merge_o)
    used = [TILES[task] for task in range(2) if any(given[task])]
    return PlanInfo(
        path="persistent",
        num_sms=NUM_SMS,
        blocks_per_sm=found.ctas // NUM_SMS,
        q_tile=max(used, default=None),
        kv_chunk=max(found.chunks) if split else None,
        split_kv=split,
        merged_states=tuple(states),
        padded_batch_size=found.ctas,
        float_bytes=found.layout.used("float"),
        int_bytes=found.layout.used("int"),
        work=tuple(item for items in by_cta for item in items),
        vector=(1, found.ctas, *found.offsets),
        arrays=tuple(arrays),
        steps=(
            f"requests of more than {TILES[1]} packed rows in tiles of {TILES[0]}, others of {TILES[1]}; chunks of "
            f"{found.chunks[0]} and {found.chunks[1]} tokens (scheduler.cuh, TwoStageHolisticPlan)",
            "a chunk of a tile costs 2 * tile + its KV (scheduler.cuh, cost_function)",
            f"each to the one of {found.ctas} CTAs with the least cost so far, long requests first (heap.h, MinHeap)",
        ),
    )


def _task(packed_rows: int) -> int:
    return 1 if packed_rows <= TILES[1] else 0


def _too_many(works: int) -> ValueError:
    return ValueError(
        f"total_num_works (#q tiles * #kv tiles) {works} exceeds max_total_num_works {_MOST_WORKS}"
    )


def _tiles(batch: Batch) -> list[tuple[int, int, int, int, int]]:
    """Every query tile, long requests first: (task, request, tile, its rows, KV that it sees)."""
    found = []
    for task, tile in enumerate(TILES):
        for i, n in enumerate(batch.qo_lens):
            packed = n * batch.group
            if _task(packed) != task:
                continue
            tiles = -(-packed // tile)
            for q_tile in range(tiles):
                end = batch.kv_lens[i]
                if batch.causal:
                    end = causal_end(n, end, q_tile, tile, tiles, batch.group)
                found.append((task, i, q_tile, min(tile, packed - q_tile * tile), end))
    return found


def _chunk_lengths(total: int, heads: int, ctas: int) -> tuple[int, int]:
    """KV tokens of a chunk for long and for short requests: all of the work shared out evenly, rounded up."""
    even = max(-(-total * heads // ctas), 1)
    length = 128 if even <= 128 else -(-even // 256) * 256
    return length // min(heads, 2), length
