"""fa2 prefill and tensor-core decode: query tiles by the average length, KV chunks by bisection.

The planner packs a request's rows with the heads of its group (packed row = row * group + head), cuts them into
tiles, and splits the KV of all requests into chunks of one size until two blocks for every SM are busy.
Source: include/flashinfer/attention/scheduler.cuh (PrefillPlanImpl, PrefillSplitQOKVIndptr), utils.cuh
(FA2DetermineCtaTileQ), attention/prefill.cuh (which KV a block reads).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fake_kernels.schedule.gpu import FA2_BLOCKS_PER_SM, NUM_SMS
from fake_kernels.schedule.info import Batch, PlanInfo, WorkItem
from fake_kernels.schedule.layout import Layout

_WRAP = 1 << 32


@dataclass(frozen=True)
class Decision:
    """What is known before any item is written down. chunk: pages, None without splitting."""

    tile: int
    chunk: int | None
    split: bool
    tiles: tuple[int, ...]
    chunks: tuple[int, ...]
    padded: int
    layout: Layout
    offsets: dict[str, int]


def decide(batch: Batch) -> Decision:
    """Tile, chunk size and workspaces.

    ValueError with the library's message where its planner refuses: a uniform_q_len that isn't so, and more blocks
    than a graph was planned for.
    """
    packed = [n * batch.group for n in batch.qo_lens]
    tile, most_tiles = _query_tile(batch, packed)
    tiles = tuple(_ceil(n, tile) for n in packed)
    seen = list(batch.kv_pages)
    if batch.window_left >= 0:
        most = _ceil(batch.window_left + tile, batch.page_size)
        seen = [min(most, pages) for pages in seen]
    room = NUM_SMS * FA2_BLOCKS_PER_SM // batch.num_kv_heads
    split, chunk = False, None
    if not batch.disable_split_kv:
        if batch.fixed_split_pages > 0:
            chunk = batch.fixed_split_pages
        else:
            split, chunk = _bisect(tiles, seen, room, max(128 // batch.page_size, 1), batch.cuda_graph)
    chunks = tuple(1 if chunk is None else _ceil(max(pages, 1), chunk) for pages in seen)
    if batch.fixed_split_pages > 0 and not batch.disable_split_kv:
        split = any(count > 1 for count in chunks)
    blocks = sum(q * kv for q, kv in zip(tiles, chunks, strict=True))
    padded = max(room, most_tiles) if batch.cuda_graph else blocks
    if blocks > padded:
        raise ValueError(
            "new batch size should not exceed padded batch size. If you are using fixed split size, please "
            "consider disabling cuda graph."
        )
    layout, offsets = _carve(batch, tile, split, padded)
    return Decision(tile, chunk, split, tiles, chunks, padded, layout, offsets)


def describe(batch: Batch, path: Literal["tc", "fa2"]) -> PlanInfo:
    """The whole schedule of a batch."""
    found = decide(batch)
    work, kv_tiles = [], []
    for i, (tiles, chunks) in enumerate(zip(found.tiles, found.chunks, strict=True)):
        for q_tile in range(tiles):
            first = q_tile * found.tile
            rows = (first, min(first + found.tile, batch.qo_lens[i] * batch.group))
            for chunk in range(chunks):
                work.append(WorkItem(i, q_tile, rows, _span(batch, found, i, q_tile, chunk)))
                kv_tiles.append(chunk)
    states = [n * c for n, c in zip(batch.qo_lens, found.chunks, strict=True)]
    at = found.offsets
    # Without splitting the chunk is the largest int64, and what is left of it after the multiplication by the page size.
    tokens = -batch.page_size if found.chunk is None else found.chunk * batch.page_size
    arrays = [
        ("request_indices", at["request_indices"], tuple(item.request for item in work)),
        ("qo_tile_indices", at["qo_tile_indices"], tuple(item.q_tile for item in work)),
        ("kv_tile_indices", at["kv_tile_indices"], tuple(kv_tiles)),
        ("o_indptr", at["o_indptr"], (*batch.starts(tuple(states)), sum(states))),
        ("kv_chunk_size", at["kv_chunk_size_ptr"], (tokens,)),
    ]
    if found.split:
        merged = [0]
        for rows_of, chunks in zip(batch.qo_lens, found.chunks, strict=True):
            merged += [merged[-1] + chunks * (row + 1) for row in range(rows_of)]
        arrays.append(("merge_indptr", at["merge_indptr"], tuple(merged)))
    graph = int(batch.cuda_graph)
    names = ("request_indices", "qo_tile_indices", "kv_tile_indices", "merge_indptr", "o_indptr")
    vector = [found.padded, batch.rows, at["total_num_rows"], found.tile, *(at[name] for name in names)]
    vector += [at["kv_chunk_size_ptr"], at["tmp_v"], at["tmp_s"], at["block_valid_mask"], graph]
    average = sum(batch.qo_lens) * batch.group // batch.size
    return PlanInfo(
        path=path,
        num_sms=NUM_SMS,
        blocks_per_sm=FA2_BLOCKS_PER_SM,
        q_tile=found.tile,
        kv_chunk=tokens if found.split else None,
        split_kv=found.split,
        merged_states=tuple(n * batch.num_qo_heads if found.split else 0 for n in states),
        padded_batch_size=found.padded,
        float_bytes=found.layout.used("float"),
        int_bytes=found.layout.used("int"),
        work=tuple(work),
        vector=(*vector, int(found.split)),
        arrays=tuple(arrays),
        steps=(
            f"{average} packed rows a request on average, tiles of {found.tile} (utils.cuh, FA2DetermineCtaTileQ)",
            f"room for {NUM_SMS * FA2_BLOCKS_PER_SM // batch.num_kv_heads} blocks a KV head (scheduler.cuh, "
            "PrefillPlanImpl)",
            f"{'no limit' if found.chunk is None else found.chunk} pages a chunk: {len(work)} blocks of "
            f"{sum(found.tiles)} tiles (scheduler.cuh, PrefillBinarySearchKVChunkSize)",
            f"{found.padded} blocks launched{' for any replay' if graph else ''} (scheduler.cuh, "
            "PrefillSplitQOKVIndptr)",
        ),
    )


def query_tile(packed_rows: int, head_dim: int, head_dim_vo: int) -> int:
    """Packed rows of a tile for requests of that average length (utils.cuh, FA2DetermineCtaTileQ, on Hopper)."""
    if head_dim_vo >= 512:
        return 16 if packed_rows <= 32 else 32
    if head_dim >= 512:
        return 16
    if packed_rows > 64 and head_dim_vo < 256:
        return 128
    return 64 if packed_rows > 16 else 16


def _query_tile(batch: Batch, packed: list[int]) -> tuple[int, int]:
    """The tile, and for graphs the most tiles that any batch of these sizes has."""
    if not batch.cuda_graph:
        return query_tile(sum(packed) // batch.size, batch.head_dim, batch.vo), 0
    if batch.uniform_q_len > 0:
        promised = batch.uniform_q_len * batch.group
        for i, rows in enumerate(packed):
            if rows != promised:
                raise ValueError(
                    f"qo_indptr gives request {i} a packed qo length of {rows}, but uniform_q_len="
                    f"{batch.uniform_q_len} promises {promised}"
                )
        tile = query_tile(promised, batch.head_dim, batch.vo)
        return tile, batch.size * _ceil(promised, tile)
    # The longest request that the rows allow; fewer rows than requests wrap around, as uint32 does there.
    longest = (batch.rows - batch.size + 1) % _WRAP
    tile = query_tile(longest * batch.group, batch.head_dim, batch.vo)
    return tile, _ceil(batch.rows * batch.group, tile) + batch.size - 1


def _bisect(tiles: tuple[int, ...], pages: list[int], room: int, least: int, graph: bool) -> tuple[bool, int]:
    """Whether to split, and the least chunk in pages with which tiles x chunks fit `room`."""
    longest = max(1, *pages)
    low, high = least, longest
    while low < high:
        middle = (low + high) // 2
        if sum(q * _ceil(max(n, 1), middle) for q, n in zip(tiles, pages, strict=True)) > room:
            low = middle + 1
        else:
            high = middle
    return graph or low < longest, low


def _carve(batch: Batch, tile: int, split: bool, padded: int) -> tuple[Layout, dict[str, int]]:
    layout, offsets = Layout(), dict.fromkeys(("total_num_rows", "merge_indptr", "tmp_v", "tmp_s"), 0)

    def take(buffer: Literal["float", "int"], name: str, size: int, alignment: int = 16) -> None:
        offsets[name] = layout.take(buffer, size, f"batch_prefill_{name}", alignment)

    for name in ("request_indices", "qo_tile_indices", "kv_tile_indices"):
        take("int", name, 4 * padded)
    take("int", "o_indptr", 4 * (batch.size + 1))
    take("int", "kv_chunk_size_ptr", 4, 1)
    if batch.cuda_graph:
        take("int", "total_num_rows", 4)
    if split:
        # A block spans tile / group rows of every head of a group.
        rows = _ceil(padded * tile, batch.group)
        take("float", "tmp_v", batch.num_qo_heads * rows * batch.vo * 4)
        take("float", "tmp_s", batch.num_qo_heads * rows * 4)
        take("int", "merge_indptr", 4 * (batch.rows + 1))
    offsets["block_valid_mask"] = 0
    if batch.cuda_graph:
        take("int", "block_valid_mask", padded)
    return layout, offsets


def _span(batch: Batch, found: Decision, request: int, q_tile: int, chunk: int) -> tuple[int, int]:
    """KV of a block (prefill.cuh, kv_start_idx, chunk_start, chunk_end); a causal mask ends it earlier still."""
    kv_len, first = batch.kv_lens[request], 0
    if batch.window_left >= 0:
        first = max(
            0,
            kv_len + q_tile * found.tile // batch.group - batch.qo_lens[request] - batch.window_left,
        )
    if not found.split or found.chunk is None:
        return min(first, kv_len), kv_len
    tokens = found.chunk * batch.page_size
    return min(chunk * tokens + first, kv_len), min((chunk + 1) * tokens + first, kv_len)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
