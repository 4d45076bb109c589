"""CUDA-core decode: one query row a request, the KV of all split into chunks of one size until the grid is full.

Source: include/flashinfer/attention/scheduler.cuh (DecodePlanImpl and what it calls).
"""

from __future__ import annotations

from dataclasses import dataclass

from fake_kernels.schedule.gpu import NUM_SMS, decode_blocks_per_sm
from fake_kernels.schedule.info import Batch, PlanInfo, WorkItem
from fake_kernels.schedule.layout import Layout


@dataclass(frozen=True)
class Decision:
    """What is known before any item is written down. chunk: pages. blocks: requests x chunks."""

    blocks_per_sm: int
    chunk: int
    split: bool
    blocks: int
    padded: int
    layout: Layout
    offsets: tuple[int, ...]
    """v, s, request_indices, kv_tile_indices, o_indptr, block_valid_mask, kv_chunk_size."""


def decide(batch: Batch, blocks_per_sm: int | None = None) -> Decision | str:
    """Chunk size and workspaces, or why they are unknown.

    blocks_per_sm: instead of the table's number. The chunk is the least number of pages, at least 128 tokens, with
    which requests x chunks x KV heads fit the grid (PartitionPagedKVCacheBinarySearchMinNumPagePerBatch).
    """
    window = batch.window_left != -1
    if blocks_per_sm is None and not batch.built_for:
        blocks_per_sm = decode_blocks_per_sm(batch.dtype, batch.head_dim, batch.group, window, batch.soft_cap)
    if blocks_per_sm is None:
        options = (
            [batch.built_for] * bool(batch.built_for) + ["window"] * window + ["soft cap"] * batch.soft_cap
        )
        return (
            f"blocks per SM of CUDA-core decode for {batch.dtype}, head_dim {batch.head_dim}, group "
            f"{batch.group}{''.join(f', {told}' for told in options)}: not measured"
        )
    # The planner counts KV heads as the launch will: from the group that it was built for.
    heads = batch.num_qo_heads // batch.group
    grid = blocks_per_sm * NUM_SMS
    if batch.size * heads >= grid:
        chunk, split, blocks = max(1, *batch.kv_pages), False, batch.size
    else:
        chunk = _least_chunk(batch.kv_pages, grid, heads, max(128 // batch.page_size, 1))
        blocks = sum(_chunks(max(pages, 1), chunk) for pages in batch.kv_pages)
        split = batch.cuda_graph or blocks != batch.size
    padded = (grid // heads if split else batch.size) if batch.cuda_graph else blocks
    layout = Layout()
    request = layout.take("int", 4 * padded, "batch_decode_request_indices")
    tile = layout.take("int", 4 * padded, "batch_decode_kv_tile_indices")
    indptr = layout.take("int", 4 * (padded + 1), "batch_decode_o_indptr")
    size = layout.take("int", 4, "batch_decode_kv_chunk_size_ptr", 1)
    v = s = mask = 0
    if split:
        v = layout.take("float", batch.num_qo_heads * padded * batch.head_dim * 4, "batch_decode_tmp_v")
        s = layout.take("float", batch.num_qo_heads * padded * 4, "batch_decode_tmp_s")
        mask = layout.take("int", padded, "batch_decode_block_valid_mask")
    return Decision(
        blocks_per_sm, chunk, split, blocks, padded, layout, (v, s, request, tile, indptr, mask, size)
    )


def describe(batch: Batch, blocks_per_sm: int | None = None) -> PlanInfo:
    """The whole schedule of a batch."""
    found = decide(batch, blocks_per_sm)
    if isinstance(found, str):
        return PlanInfo(
            "dec", NUM_SMS, None, batch.group, None, None, None, None, None, None, (), (), (), (), found
        )
    tokens = found.chunk * batch.page_size
    chunks = [_chunks(max(pages, 1), found.chunk) for pages in batch.kv_pages]
    work = tuple(
        WorkItem(i, 0, (0, batch.group), _span(chunk, tokens, batch.kv_lens[i], found.split))
        for i, count in enumerate(chunks)
        for chunk in range(count)
    )
    v, s, request, tile, indptr, mask, size = found.offsets
    arrays = [
        ("request_indices", request, tuple(item.request for item in work)),
        ("kv_tile_indices", tile, tuple(c for count in chunks for c in range(count))),
        ("o_indptr", indptr, (*batch.starts(tuple(chunks)), sum(chunks))),
        ("kv_chunk_size", size, (tokens,)),
    ]
    states = tuple(count * batch.num_qo_heads if found.split else 0 for count in chunks)
    graph = batch.cuda_graph
    grid = found.blocks_per_sm * NUM_SMS
    return PlanInfo(
        path="dec",
        num_sms=NUM_SMS,
        blocks_per_sm=found.blocks_per_sm,
        q_tile=batch.group,
        kv_chunk=tokens if found.split else None,
        split_kv=found.split,
        merged_states=states,
        padded_batch_size=found.padded,
        float_bytes=found.layout.used("float"),
        int_bytes=found.layout.used("int"),
        work=work,
        vector=(found.padded, v, s, request, tile, indptr, mask, size, int(graph), int(found.split)),
        arrays=tuple(arrays),
        steps=(
            f"grid of at most {grid} blocks, {batch.num_qo_heads // batch.group} a chunk (scheduler.cuh, "
            "BatchDecodeWithPagedKVCacheWorkEstimationDispatched)",
            f"{found.chunk} pages a chunk: {found.blocks} chunks of {batch.size} requests (scheduler.cuh, "
            "PartitionPagedKVCacheBinarySearchMinNumPagePerBatch)",
            f"{found.padded} chunks launched{' for any replay' if graph else ''} (scheduler.cuh, DecodePlanImpl)",
            *_overrun(found),
        ),
    )


def _overrun(found: Decision) -> tuple[str, ...]:
    """Under graphs empty requests may take more room than there is: the bisection counts no chunk for them."""
    if found.blocks <= found.padded:
        return ()
    return (
        f"{found.blocks} chunks are written into arrays for {found.padded}, so the last requests get none: the bisection "
        "doesn't count empty requests (scheduler.cuh, DecodeSplitKVIndptr)",
    )


def _least_chunk(pages: tuple[int, ...], grid: int, heads: int, least: int) -> int:
    low, high = least, max(0, *pages)
    while low < high:
        middle = (low + high) // 2
        if sum(_chunks(n, middle) for n in pages) * heads > grid:
            low = middle + 1
        else:
            high = middle
    return low


def _chunks(pages: int, chunk: int) -> int:
    return -(-pages // chunk)


def _span(chunk: int, tokens: int, kv_len: int, split: bool) -> tuple[int, int]:
    """decode.cuh, BatchDecodeWithPagedKVCacheDevice: chunk_start and chunk_end."""
    return (chunk * tokens, min((chunk + 1) * tokens, kv_len)) if split else (0, kv_len)
