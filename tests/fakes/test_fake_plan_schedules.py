"""What must be true of any schedule: every row meets every token once, splits fill the grid and no more, workspaces hold
the partial states.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import pytest
from fake_kernels import schedule
from fake_kernels.schedule import Batch, PlanInfo, decode, fa2, fa3, persistent
from fake_kernels.schedule.gpu import NUM_SMS
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ("dec", "tc", "fa2", "fa3", "persistent")
HEADS = st.sampled_from([(8, 2), (4, 4), (16, 1), (12, 4), (32, 8)])


@st.composite
def batches(draw: st.DrawFn, decoding: bool = False, graph: bool = False) -> Batch:
    """Batches of up to twelve requests with short, long and empty KV."""
    kv = draw(st.lists(st.sampled_from([0, 1, 3, 100, 777, 5000, 40000]), min_size=1, max_size=12))
    qo = [1 if decoding else draw(st.sampled_from([0, 1, 2, 17, 300])) for _ in kv]
    page = draw(st.sampled_from([1, 16, 64]))
    heads = draw(HEADS)
    return Batch(
        qo_lens=tuple(qo),
        kv_pages=tuple(-(-n // page) for n in kv),
        kv_lens=tuple(kv),
        num_qo_heads=heads[0],
        num_kv_heads=heads[1],
        head_dim=draw(st.sampled_from([64, 128])),
        page_size=page,
        causal=not decoding and draw(st.booleans()),
        cuda_graph=graph and draw(st.booleans()),
    )


def covered(info: PlanInfo, batch: Batch) -> None:
    """Every packed row of every request has each KV token that its tile must see, once for each head."""
    rows: dict[tuple[int, int | None], list[tuple[int, int]]] = defaultdict(list)
    spans: dict[tuple[int, int, int | None], list[tuple[int, int]]] = defaultdict(list)
    for item in info.work:
        key = (item.request, item.q_tile, item.head)
        if not spans[key]:
            rows[item.request, item.head].append(item.rows)
        spans[key].append(item.kv)
    group = 1 if info.path == "fa3" else batch.group
    heads: list[int | None] = [None]
    if info.path in ("fa3", "persistent"):
        heads = list(range(batch.num_qo_heads if info.path == "fa3" else batch.num_kv_heads))
    for i, count in enumerate(batch.qo_lens):
        for head in heads:
            at = 0
            for first, end in sorted(rows[i, head]):
                assert first == at
                at = end
            assert at == count * group
    for (request, q_tile, head), found in spans.items():
        at = 0
        for first, end in sorted(found):
            assert first == at
            at = max(end, at)
        needs = batch.kv_lens[request]
        if batch.causal and info.path in ("fa3", "persistent"):
            last_row = max(end for _, end in rows[request, head])
            own = next(
                span for span in rows[request, head] if span[0] == q_tile * span_size(info, batch, request)
            )
            if own[1] != last_row:
                needs = max(0, needs - batch.qo_lens[request] + -(-own[1] // group))
        assert at == needs


def span_size(info: PlanInfo, batch: Batch, request: int) -> int:
    if info.path == "persistent":
        return 16 if batch.qo_lens[request] * batch.group <= 16 else 128
    assert info.q_tile is not None
    return info.q_tile


@pytest.mark.parametrize("path", KINDS)
@settings(max_examples=30, derandomize=True, deadline=None)
@given(data=st.data())
def test_every_row_meets_every_token_once(path: schedule.Planner, data: st.DataObject) -> None:
    batch = data.draw(batches(decoding=path in ("dec", "tc"), graph=path in ("dec", "tc", "fa2")))
    covered(schedule.describe(batch, path), batch)


@pytest.mark.parametrize("path", KINDS)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.data())
def test_workspaces_are_the_same_without_the_items(path: schedule.Planner, data: st.DataObject) -> None:
    """And hold the partial states that are merged: a float32 vector and an LSE each (BatchAttention: half types)."""
    batch = data.draw(batches(decoding=path in ("dec", "tc"), graph=path in ("dec", "tc", "fa2")))
    info, layout = schedule.describe(batch, path), schedule.workspaces(batch, path)
    assert layout is not None
    assert (layout.used("float"), layout.used("int")) == (info.float_bytes, info.int_bytes)
    assert info.float_bytes is not None
    assert info.int_bytes is not None
    assert info.total_merged_states is not None
    state = batch.vo * (2 if path == "persistent" else 4) + 4
    assert info.float_bytes >= info.total_merged_states * state
    assert (info.float_bytes == 0) == (not info.split_kv) or path == "persistent"
    for name, offset, values in info.arrays:
        assert offset + 4 * len(values) <= info.int_bytes, name


@settings(max_examples=40, derandomize=True, deadline=None)
@given(batches(decoding=True), st.integers(1, 12))
def test_decode_takes_the_least_chunk_that_fits_the_grid(batch: Batch, blocks: int) -> None:
    found = decode.decide(batch, blocks)
    assert isinstance(found, decode.Decision)
    grid, least = blocks * NUM_SMS, max(128 // batch.page_size, 1)

    def needed(chunk: int) -> int:
        return sum(-(-pages // chunk) for pages in batch.kv_pages) * batch.num_kv_heads

    assert found.split == (found.blocks > batch.size)
    if batch.size * batch.num_kv_heads < grid and max(batch.kv_pages) > least:
        assert needed(found.chunk) <= grid
        assert found.chunk == least or needed(found.chunk - 1) > grid


@settings(max_examples=40, derandomize=True, deadline=None)
@given(batches())
def test_fa2_takes_the_least_chunk_that_keeps_two_blocks_an_sm_busy(batch: Batch) -> None:
    found = fa2.decide(batch)
    room, least = 2 * NUM_SMS // batch.num_kv_heads, max(128 // batch.page_size, 1)
    assert found.chunk is not None

    def needed(chunk: int) -> int:
        return sum(t * -(-max(p, 1) // chunk) for t, p in zip(found.tiles, batch.kv_pages, strict=True))

    longest = max(1, *batch.kv_pages)
    if longest > least:
        assert needed(found.chunk) <= room or found.chunk == longest
        assert found.chunk == least or needed(found.chunk - 1) > room
    assert found.split == (found.chunk < longest)
    assert found.padded == sum(t * c for t, c in zip(found.tiles, found.chunks, strict=True))


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.data(), st.sampled_from(["fa3", "persistent"]))
def test_no_cta_has_more_than_the_least_busy_and_one_item(
    data: st.DataObject, path: schedule.Planner
) -> None:
    """What giving each item to the least busy CTA guarantees; costs are 2 * tile + KV."""
    batch = data.draw(batches())
    info = schedule.describe(batch, path)
    assert info.padded_batch_size is not None
    loads = [0] * info.padded_batch_size
    largest = 0
    for item in info.work:
        assert item.cta is not None
        cost = 2 * span_size(info, batch, item.request) + item.kv[1] - item.kv[0]
        loads[item.cta] += cost
        largest = max(largest, cost)
    assert max(loads) - min(loads) <= largest
    ctas = range(info.padded_batch_size)
    assert [item for cta in ctas for item in info.of_cta(cta)] == list(info.work)


def test_query_tiles_follow_the_average_packed_length() -> None:
    for packed, head_dim, tile in (
        (1, 128, 16),
        (16, 64, 16),
        (17, 128, 64),
        (64, 128, 64),
        (65, 128, 128),
        (65, 256, 64),
        (9, 576, 16),
        (500, 512, 32),
    ):
        assert fa2.query_tile(packed, head_dim, head_dim) == tile
    assert (fa3.query_tile(64), fa3.query_tile(128)) == (192, 128)
    long = Batch((1, 9), (4, 4), (64, 64), 8, 2, 128, 16)
    assert {item.rows for item in persistent.describe(long).work} == {(0, 4), (0, 36)}


def test_windows_make_chunks_only_for_what_is_seen() -> None:
    batch = Batch((1,), (4096,), (65536,), 8, 1, 128, 16)
    seen = dataclasses.replace(batch, window_left=1000)
    wide, narrow = schedule.describe(batch, "tc"), schedule.describe(seen, "tc")
    assert len(wide.work) > len(narrow.work) > 1
    assert narrow.work[0].kv[0] == 65536 - 1 - 1000
    assert narrow.work[-1].kv[1] == 65536


def test_a_schedule_for_graphs_does_not_depend_on_the_lengths() -> None:
    for path in ("dec", "tc", "fa2"):
        plans = [
            schedule.describe(Batch((1,) * 4, (n,) * 4, (n,) * 4, 8, 2, 128, 1, cuda_graph=True), path)
            for n in (1, 100, 90000)
        ]
        assert len({(p.padded_batch_size, p.float_bytes, p.int_bytes, p.split_kv) for p in plans}) == 1
        assert plans[0].split_kv


def test_empty_requests_may_overrun_a_decode_under_graphs() -> None:
    """From the planner's source: the bisection counts no chunk for them, the arrays have one each."""
    sizes = (2000,) * 6 + (0,) * 24
    batch = Batch((1,) * 30, sizes, sizes, 24, 24, 128, 1, cuda_graph=True)
    info = schedule.describe(batch, "dec")
    assert info.padded_batch_size is not None
    assert len(info.work) > info.padded_batch_size
    assert "the last requests get none" in str(info)
    full = dataclasses.replace(batch, kv_pages=(2000,) * 30, kv_lens=(2000,) * 30)
    assert "get none" not in str(schedule.describe(full, "dec"))


def test_a_batch_that_fills_the_grid_is_not_split() -> None:
    batch = Batch((1,) * 600, (64,) * 600, (1024,) * 600, 8, 8, 128, 16)
    for path in ("dec", "tc"):
        info = schedule.describe(batch, path)
        assert not info.split_kv
        assert info.float_bytes == 0
        assert info.total_merged_states == 0


def test_splitting_may_be_fixed_or_switched_off() -> None:
    batch = Batch((1, 1), (100, 3), (1600, 48), 8, 2, 128, 16)
    fixed = schedule.describe(dataclasses.replace(batch, fixed_split_pages=10), "tc")
    assert (fixed.kv_chunk, len(fixed.work), fixed.merged_states) == (160, 11, (80, 8))
    off = dataclasses.replace(batch, fixed_split_pages=10, disable_split_kv=True)
    assert not schedule.describe(off, "tc").split_kv
    graph = dataclasses.replace(batch, fixed_split_pages=1, kv_pages=(4000, 1), cuda_graph=True)
    with pytest.raises(ValueError, match="consider disabling cuda graph"):
        schedule.describe(graph, "tc")


def test_one_schedule_serves_all_heads_of_a_very_long_prefill() -> None:
    info = schedule.describe(Batch((600000,), (600000,), (600000,), 4, 4, 128, 1), "fa3")
    assert info.vector[-1] == 1
    assert {item.head for item in info.work} == {None}
    assert len(info.work) == -(-600000 // 128)


def test_a_kernel_that_nobody_measured_has_no_schedule() -> None:
    batch = Batch((1,), (100,), (1600,), 8, 2, 96, 16)
    for unknown in (batch, dataclasses.replace(batch, head_dim=128, built_for="ALIBI")):
        info = schedule.describe(unknown, "dec")
        assert schedule.workspaces(unknown, "dec") is None
        assert info.unknown is not None
        assert "not measured" in info.unknown
        assert (info.blocks_per_sm, info.kv_chunk, info.split_kv, info.float_bytes, info.work) == (
            None,
            None,
            None,
            None,
            (),
        )
        assert "unknown" in str(info)


def test_float32_has_the_schedule_of_a_two_byte_type() -> None:
    batch = Batch((1,) * 3, (100,) * 3, (1600,) * 3, 8, 2, 128, 16)
    for path in KINDS:
        single = schedule.describe(dataclasses.replace(batch, dtype="float32"), path)
        assert single.vector == schedule.describe(batch, path).vector


def test_it_reads_as_a_table_and_cannot_be_changed() -> None:
    info = schedule.describe(Batch((1,) * 3, (1000,) * 3, (16000,) * 3, 8, 2, 128, 16), "tc")
    text = str(info)
    for part in (
        "path              tc",
        "132",
        "KV chunk          ",
        "PrefillBinarySearchKVChunkSize",
        "more",
    ):
        assert part in text
    assert len(text.splitlines()) < 45
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.padded_batch_size = 1  # type: ignore[misc]
