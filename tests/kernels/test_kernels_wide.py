"""What the random tests beside this one leave out, on every path: positions, head dimensions of their own for V, any group,
windows and caps everywhere, layouts, sinks, masks and batches in the buffers of CUDA graphs; in float32, to 1e-5.

Only for the fakes: on a GPU nearly every example would be a kernel to compile.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import flashinfer
import pytest
import torch
from dense import Paged, Rule, arena, attention, paged, random_lengths, random_masks, sums
from hypothesis import given, settings
from hypothesis import strategies as st
from place import REAL, close, i32, normal, rng
from sgl_kernel.flash_attn import flash_attn_varlen_func, flash_attn_with_kvcache

pytestmark = pytest.mark.skipif(REAL, reason="would compile a kernel for nearly every example")

EXAMPLES = settings(max_examples=40, derandomize=True, deadline=None)
SEEDS = given(seed=st.integers(0, 2**32 - 1))
FULL = torch.float32
ANY_GROUP = ((3, 3), (5, 1), (10, 2), (7, 1), (24, 2), (16, 1), (4, 2))
DEC_GROUP = ((3, 3), (4, 2), (6, 2), (4, 1), (12, 2), (8, 1), (16, 1))
HEAD_DIMS = (8, 40, 64, 128)


def groups_of(path: str) -> tuple[tuple[int, int], ...]:
    """Query and KV heads: CUDA-core decode has kernels for few ratios only."""
    return DEC_GROUP if path == "dec" else ANY_GROUP


def scoring(pick: random.Random, *, causal: bool, window: bool = True) -> Rule:
    """A window, a cap, a scale, or none of them."""
    return Rule(
        causal=causal and pick.random() < 0.6,
        left=pick.choice([-1, 0, 1, 5, 30]) if window else -1,
        cap=pick.choice([0.0, 1.5, 30.0]),
        scale=pick.choice([None, 0.3]),
    )


def options_of(rule: Rule, *, window: bool = True) -> dict[str, Any]:
    """The rule in the words of plans and of the functions for one request."""
    told: dict[str, Any] = {"logits_soft_cap": rule.cap or None, "sm_scale": rule.scale}
    return told | ({"window_left": rule.left} if window else {})


def with_positions(pick: random.Random, rule: Rule, heads: int) -> tuple[Rule, dict[str, Any]]:
    """The rule with ALiBi (then without a cap) or rotary embedding, and how to ask for it."""
    same = {"causal": rule.causal, "left": rule.left, "scale": rule.scale}
    if pick.random() < 0.5:
        n = 2 ** int(math.log2(heads))
        powers = [8 * (i + 1) / n for i in range(n)] + [4 * (2 * i + 1) / n for i in range(heads - n)]
        slopes = torch.tensor([2.0**-p for p in powers], dtype=torch.float64)
        return Rule(**same, slopes=slopes), {"pos_encoding_mode": "ALIBI"}
    scale, theta = pick.choice([(None, None), (2.0, 5e4)])
    told = {"pos_encoding_mode": "ROPE_LLAMA", "rope_scale": scale, "rope_theta": theta}
    return Rule(**same, cap=rule.cap, rope=(scale or 1.0, theta or 1e4)), told


def batch_for(pick: random.Random, path: str, *, all_kv: bool = False, empty: bool = True) -> Paged:
    """A random batch; all_kv: KV no shorter than q."""
    q_lens, kv_lens = random_lengths(pick, path in ("dec", "tc"), 40, empty=empty)
    if all_kv:
        kv_lens = [max(n, kv) for n, kv in zip(q_lens, kv_lens, strict=True)]
    return paged(
        q_lens,
        kv_lens,
        page_size=pick.choice([1, 3, 4, 16]),
        heads=pick.choice(groups_of(path)),
        head_dim=pick.choice(HEAD_DIMS),
        dtype=FULL,
        seed=pick.randrange(1 << 30),
    )


def arrays_of(batch: Paged, path: str) -> tuple[torch.Tensor, ...]:
    lists = (batch.indptr, batch.indices, batch.last)
    return lists if path in ("dec", "tc") else (batch.qo_indptr, *lists)


def wrapper_for(path: str, layout: str = "NHD") -> Any:
    if path in ("dec", "tc"):
        return flashinfer.BatchDecodeWithPagedKVCacheWrapper(arena(), layout, use_tensor_cores=path == "tc")
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(arena(), layout, backend=path)


def check(run: Callable[..., Any], batch: Paged, rule: Rule, masks: list[torch.Tensor] | None = None) -> None:
    """Hold `run(return_lse=...)` of a planned batch to the definition, with and without LSE."""
    want, natural = batch.want(rule, masks)
    close(run(return_lse=False), want, FULL)
    out, lse = run(return_lse=True)
    close(out, want, FULL)
    close(lse, natural / math.log(2), FULL, lse=True)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2", "fa3"])
@EXAMPLES
@SEEDS
def test_any_group_and_head_dim(path: str, seed: int) -> None:
    pick = random.Random(seed)
    batch = batch_for(pick, path)
    rule = scoring(pick, causal=path in ("fa2", "fa3"))
    layout = pick.choice(["NHD", "HND"])
    wrapper = wrapper_for(path, layout)
    told = {"causal": rule.causal} if path in ("fa2", "fa3") else {}
    wrapper.plan(*arrays_of(batch, path), *batch.sizes, q_data_type=FULL, **told, **options_of(rule))
    cache = batch.cache(pick.choice(["tuple", "stacked"]), layout)
    check(lambda **how: wrapper.run(batch.q, cache, **how), batch, rule)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2"])
@EXAMPLES
@SEEDS
def test_positions_in_pages(path: str, seed: int) -> None:
    pick = random.Random(seed)
    batch = batch_for(pick, path, all_kv=True)
    rule, positions = with_positions(pick, scoring(pick, causal=path == "fa2"), batch.heads[0])
    layout = pick.choice(["NHD", "HND"])
    wrapper = wrapper_for(path, layout)
    told = {"causal": rule.causal} if path == "fa2" else {}
    options = {**options_of(rule), **positions, **told, "q_data_type": FULL}
    wrapper.plan(*arrays_of(batch, path), *batch.sizes, **options)
    cache = batch.cache(pick.choice(["tuple", "stacked"]), layout)
    check(lambda **how: wrapper.run(batch.q, cache, **how), batch, rule)


def in_layout(x: torch.Tensor, layout: str) -> torch.Tensor:
    return x if layout == "NHD" else x.transpose(0, 1).contiguous()


def no_pages(
    pick: random.Random, q_rows: int, kv_rows: int, groups: tuple[tuple[int, int], ...], *, same: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q, k and v; unless `same`, head_dim of V may be its own."""
    heads, dim = pick.choice(groups), pick.choice(HEAD_DIMS)
    generator = rng(pick.randrange(1 << 30))
    q = normal(generator, q_rows, heads[0], dim, dtype=FULL)
    k = normal(generator, kv_rows, heads[1], dim, dtype=FULL)
    return (
        q,
        k,
        normal(generator, kv_rows, heads[1], dim if same else pick.choice([dim, 16, 128]), dtype=FULL),
    )


@pytest.mark.parametrize("backend", ["fa2", "fa3"])
@EXAMPLES
@SEEDS
def test_ragged_batches(backend: str, seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False, longest=40)
    rule, positions = scoring(pick, causal=True), {}
    if backend == "fa2" and pick.random() < 0.5:
        kv_lens = [max(n, kv) for n, kv in zip(q_lens, kv_lens, strict=True)]
        positions = {"positions": True}
    kv_lens[0] = max(1, kv_lens[0])
    q, k, v = no_pages(pick, sum(q_lens), sum(kv_lens), ANY_GROUP, same=False)
    if positions:
        rule, positions = with_positions(pick, rule, q.shape[1])
    layout = pick.choice(["NHD", "HND"]) if backend == "fa2" else "NHD"
    masks = None
    told: dict[str, Any] = {"causal": rule.causal}
    if backend == "fa2" and pick.random() < 0.3 and min(kv_lens) > 0:
        masks = random_masks(pick, q_lens, kv_lens)
        told = {"custom_mask": torch.cat([mask.flatten() for mask in masks])}
        rule = Rule(**{**vars(rule), "causal": False})
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(arena(), layout, backend=backend)
    sizes = (q.shape[1], k.shape[1], q.shape[2])
    options = {**options_of(rule), **positions, **told, "head_dim_vo": v.shape[2], "q_data_type": FULL}
    wrapper.plan(sums(q_lens), sums(kv_lens), *sizes, **options)
    parts = [
        attention(*of, rule, None if masks is None else masks[i])
        for i, of in enumerate(zip(q.split(q_lens), k.split(kv_lens), v.split(kv_lens), strict=True))
    ]
    out, lse = wrapper.run(q, in_layout(k, layout), in_layout(v, layout), return_lse=True)
    close(out, torch.cat([part for part, _ in parts]), FULL)
    close(lse, torch.cat([part for _, part in parts]) / math.log(2), FULL, lse=True)
    close(wrapper.run(q, in_layout(k, layout), in_layout(v, layout)), out.double(), FULL)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2", "fa3"])
@EXAMPLES
@SEEDS
def test_single_requests(path: str, seed: int) -> None:
    pick = random.Random(seed)
    decode = path in ("dec", "tc")
    n = 1 if decode else pick.choice([1, 2, pick.randint(1, 40)])
    kv = n + pick.choice([0, 1, pick.randint(0, 60)])
    q, k, v = no_pages(pick, n, kv, groups_of(path), same=decode)
    rule, positions = scoring(pick, causal=not decode), {}
    if path != "fa3" and pick.random() < 0.5:
        rule, positions = with_positions(pick, rule, q.shape[1])
    layout = "NHD" if path == "fa3" else pick.choice(["NHD", "HND"])
    told = {**options_of(rule), **positions, "kv_layout": layout, "return_lse": True}
    given_k, given_v = in_layout(k, layout), in_layout(v, layout)
    want, natural = attention(q, k, v, rule)
    if decode:
        found = flashinfer.single_decode_with_kv_cache(
            q[0], given_k, given_v, use_tensor_cores=path == "tc", **told
        )
        out, lse = (part.unsqueeze(0) for part in found)
    else:
        out, lse = flashinfer.single_prefill_with_kv_cache(
            q, given_k, given_v, causal=rule.causal, backend=path, **told
        )
    close(out, want, FULL)
    close(lse, natural / math.log(2), FULL, lse=True)


@EXAMPLES
@SEEDS
def test_masks_in_pages(seed: int) -> None:
    pick = random.Random(seed)
    batch = batch_for(pick, "fa2", empty=False)
    masks = random_masks(pick, batch.q_lens, batch.kv_lens)
    rule = scoring(pick, causal=False)
    layout = pick.choice(["NHD", "HND"])
    flat = torch.cat([mask.flatten() for mask in masks])
    told = {"custom_mask": flat, "causal": pick.random() < 0.5}
    if len(masks) == 1 and pick.random() < 0.5:
        told = {"packed_custom_mask": flashinfer.packbits(flat, bitorder="little")}
    wrapper = wrapper_for("fa2", layout)
    wrapper.plan(*arrays_of(batch, "fa2"), *batch.sizes, q_data_type=FULL, **told, **options_of(rule))
    cache = batch.cache(pick.choice(["tuple", "stacked"]), layout)
    check(lambda **how: wrapper.run(batch.q, cache, **how), batch, rule, masks)


@pytest.mark.parametrize("backend", ["fa2", "fa3"])
@EXAMPLES
@SEEDS
def test_sinks_in_pages(backend: str, seed: int) -> None:
    """A row that sees nothing still has the sink: its output is 0, its LSE the sink's."""
    pick = random.Random(seed)
    batch = batch_for(pick, backend, empty=False)
    window = pick.choice([-1, 0, 5])
    rule = Rule(
        causal=pick.random() < 0.6,
        left=window,
        scale=pick.choice([0.125, 0.3]),
        sinks=2 * torch.randn(batch.heads[0], generator=rng(pick.randrange(1 << 30))),
    )
    layout, dim = pick.choice(["NHD", "HND"]), batch.q.shape[2]
    wrapper = flashinfer.BatchAttentionWithAttentionSinkWrapper(
        arena(),
        layout,
        backend=backend,
        q_data_type=FULL,
        kv_data_type=FULL,
        head_dim_qk=dim,
        head_dim_vo=dim,
        window_left=window,
    )
    arrays = arrays_of(batch, backend)
    wrapper.plan(*arrays, *batch.sizes, causal=rule.causal, window_left=window, q_data_type=FULL)
    cache = batch.cache(pick.choice(["tuple", "stacked"]), layout)
    check(lambda **how: wrapper.run(batch.q, cache, rule.sinks, rule.scale, **how), batch, rule)


def flash_rule(pick: random.Random, heads: int) -> tuple[Rule, dict[str, Any]]:
    """Everything that FlashAttention does to scores, sinks too, and its words for it."""
    left, right = pick.choice([(-1, -1), (3, 0), (2, 4), (16, -1), (-1, 2), (0, 0)])
    rule = Rule(
        causal=pick.random() < 0.5,
        left=left,
        right=right,
        cap=pick.choice([0.0, 2.5]),
        scale=pick.choice([None, 0.3]),
        sinks=torch.randn(heads, generator=rng(pick.randrange(1 << 30))) if pick.random() < 0.6 else None,
    )
    return rule, {
        "causal": rule.causal,
        "window_size": (left, right),
        "softcap": rule.cap,
        "softmax_scale": rule.scale,
        "sinks": rule.sinks,
        "return_softmax_lse": True,
    }


@pytest.mark.parametrize("form", ["pages", "pages and equal rows", "rows of the cache", "one length"])
@EXAMPLES
@SEEDS
def test_flash_attention(form: str, seed: int) -> None:
    pick = random.Random(seed)
    batch = batch_for(pick, "fa3")
    q_lens, kv_lens, page_size = list(batch.q_lens), list(batch.kv_lens), batch.page_size
    if form in ("pages and equal rows", "one length"):
        q_lens = [pick.randint(1, 6)] * len(q_lens)
    if form == "one length":
        kv_lens = [pick.randint(1, 30)] * len(kv_lens)
    if form == "rows of the cache":
        page_size = max(1, *kv_lens)
    batch = paged(
        q_lens,
        kv_lens,
        page_size=page_size,
        heads=batch.heads,
        head_dim=batch.q.shape[2],
        dtype=FULL,
        seed=pick.randrange(1 << 30),
    )
    rule, options = flash_rule(pick, batch.heads[0])
    want, natural = batch.want(rule)
    q, k, v = batch.q, batch.k, batch.v
    lengths: Any = i32(batch.kv_lens)
    told: dict[str, Any] = {"page_table": batch.table}
    if form in ("pages and equal rows", "one length"):
        q = q.view(len(batch.q_lens), -1, *q.shape[1:])
    else:
        told |= {"cu_seqlens_q": batch.qo_indptr, "max_seqlen_q": max(batch.q_lens)}
    if form == "one length":
        lengths = batch.kv_lens[0]
    if form == "rows of the cache":
        del told["page_table"]
        k, v = (
            torch.stack([cache[pages[0]] if pages else cache[0] for pages in batch.pages]) for cache in (k, v)
        )
    out, lse = flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, **told, **options)
    assert out.shape == q.shape
    close(out.reshape(want.shape), want, FULL)
    lse = lse.t() if lse.ndim == 2 else lse.transpose(1, 2).flatten(0, 1)
    close(lse, natural, FULL, lse=True)


@EXAMPLES
@SEEDS
def test_flash_attention_without_pages(seed: int) -> None:
    pick = random.Random(seed)
    q_lens, kv_lens = random_lengths(pick, decode=False, longest=40)
    kv_lens[0] = max(1, kv_lens[0])
    q, k, v = no_pages(pick, sum(q_lens), sum(kv_lens), ANY_GROUP, same=False)
    rule, options = flash_rule(pick, q.shape[1])
    parts = [
        attention(*of, rule) for of in zip(q.split(q_lens), k.split(kv_lens), v.split(kv_lens), strict=True)
    ]
    out, lse = flash_attn_varlen_func(
        q, k, v, sums(q_lens), sums(kv_lens), max(q_lens), max(kv_lens), **options
    )
    close(out, torch.cat([part for part, _ in parts]), FULL)
    close(lse.t(), torch.cat([part for _, part in parts]), FULL, lse=True)


@EXAMPLES
@SEEDS
def test_the_persistent_kernel(seed: int) -> None:
    pick = random.Random(seed)
    batch = batch_for(pick, "persistent")
    rule = scoring(pick, causal=True, window=False)
    layout, dim = pick.choice(["NHD", "HND"]), batch.q.shape[2]
    wrapper = flashinfer.BatchAttention(layout, "cpu")
    wrapper.plan(
        batch.qo_indptr,
        batch.indptr,
        batch.indices,
        i32(batch.kv_lens),
        *batch.heads,
        dim,
        dim,
        batch.page_size,
        causal=rule.causal,
        q_data_type=FULL,
        kv_data_type=FULL,
        **options_of(rule, window=False),
    )
    cache = batch.cache(pick.choice(["tuple", "stacked"]), layout)
    out, lse = wrapper.run(batch.q, cache, logits_soft_cap=rule.cap)
    want, natural = batch.want(rule)
    close(out, want, FULL)
    close(lse, natural / math.log(2), FULL, lse=True)


@EXAMPLES
@SEEDS
def test_equal_blocks(seed: int) -> None:
    pick = random.Random(seed)
    R, C = pick.choice([(1, 1), (1, 3), (4, 4), (16, 8), (5, 2)])
    rows, columns = pick.randint(1, 5), pick.randint(1, 6)
    M, N = (rows - 1) * R + pick.randint(1, R), columns * C
    groups = DEC_GROUP if R == 1 else [(h, kv) for h, kv in ANY_GROUP if R * (h // kv) >= 4]
    q, k, v = no_pages(pick, M, N, tuple(groups), same=True)
    blocks = torch.rand(rows, columns, generator=rng(pick.randrange(1 << 30))) < 0.5
    listed = [
        pick.sample(found, len(found)) for found in (row.nonzero().flatten().tolist() for row in blocks)
    ]
    indptr = [0, *blocks.sum(1).cumsum(0).tolist()]
    rule = scoring(pick, causal=False, window=False)
    wrapper = flashinfer.BlockSparseAttentionWrapper(arena())
    wrapper.plan(
        i32(indptr),
        i32([block for row in listed for block in row]),
        M,
        N,
        R,
        C,
        q.shape[1],
        k.shape[1],
        q.shape[2],
        q_data_type=FULL,
        o_data_type=FULL,
        **options_of(rule, window=False),
    )
    seen = blocks.repeat_interleave(R, 0).repeat_interleave(C, 1)[:M]
    want, natural = attention(q, k, v, rule, seen)
    out, lse = wrapper.run(q, k, v, return_lse=True)
    close(out, want, FULL)
    close(lse, natural / math.log(2), FULL, lse=True)


@EXAMPLES
@SEEDS
def test_variable_blocks(seed: int) -> None:
    pick = random.Random(seed)
    heads, group = pick.choice([(1, 1), (2, 1), (2, 5), (3, 2)])
    M, N, dim = pick.randint(3, 40), pick.randint(3, 40), pick.choice(HEAD_DIMS)
    generator = rng(pick.randrange(1 << 30))
    cuts = [pick.randint(0, M), pick.randint(0, N)]
    row_sz, col_sz = (
        torch.tensor([[cut, total - cut]] * heads) for cut, total in zip(cuts, (M, N), strict=True)
    )
    blocks = torch.rand(heads, 2, 2, generator=generator) < 0.6
    blocks[0, 0, int(col_sz[0].argmax())] = True
    q = normal(generator, heads * group, M, dim, dtype=FULL)
    k, v = (normal(generator, heads, N, dim, dtype=FULL) for _ in range(2))
    rule = scoring(pick, causal=False, window=False)
    wrapper = flashinfer.VariableBlockSparseAttentionWrapper(arena())
    sizes = (row_sz.int(), col_sz.int(), heads * group, heads, dim)
    wrapper.plan(blocks, *sizes, q_data_type=FULL, **options_of(rule, window=False))
    out, lse = wrapper.run(q, k, v, return_lse=True)
    for head in range(heads):
        seen = blocks[head].repeat_interleave(row_sz[head], 0).repeat_interleave(col_sz[head], 1)
        of_head = slice(head * group, (head + 1) * group)
        of_q = q[of_head].transpose(0, 1)
        want, natural = attention(of_q, k[head].unsqueeze(1), v[head].unsqueeze(1), rule, seen)
        close(out[of_head].transpose(0, 1), want, FULL)
        close(lse[of_head].transpose(0, 1), natural / math.log(2), FULL, lse=True)


@EXAMPLES
@SEEDS
def test_cascades(seed: int) -> None:
    """A prefix for all, one for each of two groups, and each request's own KV."""
    pick = random.Random(seed)
    rows = [pick.randint(1, 6) for _ in range(pick.randint(1, 4))]
    half = pick.randint(1, len(rows))
    groups = [[len(rows)], [half, len(rows) - half] if half < len(rows) else [half], [1] * len(rows)]
    groups = groups[pick.randint(0, 2) :]
    own = [n + pick.choice([0, 1, pick.randint(0, 20)]) for n in rows]
    lengths = [[pick.randint(1, 20) for _ in level] for level in groups[:-1]] + [own]
    pool = paged(
        [sum(rows), *[0] * (sum(map(len, lengths)) - 1)],
        [n for level in lengths for n in level],
        page_size=pick.choice([1, 3, 16]),
        heads=pick.choice(ANY_GROUP),
        head_dim=pick.choice(HEAD_DIMS),
        dtype=FULL,
        seed=pick.randrange(1 << 30),
    )
    arrays: tuple[list[torch.Tensor], ...] = ([], [], [], [])
    owners: list[list[int]] = []
    entry = 0
    for level, sizes in zip(groups, lengths, strict=True):
        pages = pool.pages[entry : entry + len(sizes)]
        ends = [sum(level[: i + 1]) for i in range(len(level))]
        arrays[0].append(i32([0, *(sum(rows[:end]) for end in ends)]))
        arrays[1].append(sums([len(p) for p in pages]))
        arrays[2].append(i32([page for row in pages for page in row]))
        arrays[3].append(i32([(n - 1) % pool.page_size + 1 for n in sizes]))
        owners.append([entry + i for i, members in enumerate(level) for _ in range(members)])
        entry += len(sizes)
    rule = scoring(pick, causal=True, window=False)
    layout = pick.choice(["NHD", "HND"])
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(len(groups), arena(), layout)
    told = {"causal": rule.causal, "q_data_type": FULL, **options_of(rule, window=False)}
    wrapper.plan(*arrays, *pool.sizes, **told)
    wants = []
    for i, q in enumerate(pool.q.split(rows)):
        k = torch.cat([pool.tokens(pool.k, owner[i]) for owner in owners])
        v = torch.cat([pool.tokens(pool.v, owner[i]) for owner in owners])
        wants.append(attention(q, k, v, rule)[0])
    cache = pool.cache(pick.choice(["tuple", "stacked"]), layout)
    close(wrapper.run(pool.q, cache), torch.cat(wants), FULL)


@pytest.mark.parametrize("path", ["dec", "tc", "fa2"])
@EXAMPLES
@SEEDS
def test_batch_after_batch_in_the_buffers_of_a_graph(path: str, seed: int) -> None:
    pick = random.Random(seed)
    decode, count = path in ("dec", "tc"), pick.randint(1, 4)
    heads, size, layout = pick.choice(groups_of(path)), pick.choice([1, 4, 16]), pick.choice(["NHD", "HND"])
    buffers = {
        "paged_kv_indptr": torch.zeros(count + 1, dtype=torch.int32),
        "paged_kv_indices": torch.zeros(400, dtype=torch.int32),
        "paged_kv_last_page_len": torch.zeros(count, dtype=torch.int32),
    }
    if decode:
        wrapper: Any = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            arena(),
            layout,
            use_cuda_graph=True,
            use_tensor_cores=path == "tc",
            **{f"{name}_buffer": buffer for name, buffer in buffers.items()},
        )
    else:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            arena(),
            layout,
            use_cuda_graph=True,
            backend="fa2",
            qo_indptr_buf=torch.zeros(count + 1, dtype=torch.int32),
            **{f"{name}_buf": buffer for name, buffer in buffers.items()},
        )
    for step in range(3):
        q_lens = [1 if decode else pick.randint(0 if step else 6, 6) for _ in range(count)]
        kv_lens = [pick.choice([0, 1, pick.randint(1, 60)]) for _ in range(count)]
        seed_of = pick.randrange(1 << 30)
        batch = paged(q_lens, kv_lens, page_size=size, heads=heads, dtype=FULL, seed=seed_of)
        rule = Rule(causal=not decode and pick.random() < 0.6, left=pick.choice([-1, 5]))
        told = {} if decode else {"causal": rule.causal}
        options = {**options_of(rule), **told, "q_data_type": FULL}
        wrapper.plan(*arrays_of(batch, path), *batch.sizes, **options)
        assert torch.equal(buffers["paged_kv_last_page_len"], batch.last)
        cache = batch.cache("stacked", layout)
        check(lambda q=batch.q, kv=cache, **how: wrapper.run(q, kv, **how), batch, rule)
