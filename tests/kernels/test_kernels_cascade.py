"""Cascades of two and three levels against dense attention over the levels' KV joined, in float64."""

from __future__ import annotations

import random
from itertools import pairwise

import flashinfer
import torch
from dense import GROUPS, Paged, Rule, arena, attention, paged, sums
from hypothesis import given, settings
from hypothesis import strategies as st
from place import close, i32

EXAMPLES = settings(max_examples=15, derandomize=True, deadline=None)
HALF = torch.float16


def split(pick: random.Random, count: int) -> list[int]:
    """`count` cut into one or more parts, none empty."""
    parts = []
    while count:
        parts.append(pick.randint(1, count))
        count -= parts[-1]
    return parts


def check(pick: random.Random, levels: int, rows: list[int], own: list[int], causal: bool) -> None:
    """Requests of `rows` rows with `own` KV; above them levels that share KV between groups of neighbours, the
    top one first."""
    requests = len(rows)
    shared = [split(pick, requests) for _ in range(levels - 1)]
    groups = [*shared, [1] * requests]
    lengths = [[pick.choice([1, 3, pick.randint(1, 40)]) for _ in level] for level in shared] + [own]
    pool: Paged = paged(
        [sum(rows), *[0] * (sum(map(len, lengths)) - 1)],
        [n for level in lengths for n in level],
        page_size=pick.choice([1, 4, 16]),
        heads=pick.choice(GROUPS),
        seed=pick.randrange(1 << 30),
    )
    arrays: tuple[list[torch.Tensor], ...] = ([], [], [], [])
    owners: list[list[int]] = []  # which entry of the pool each request reads at each level
    entry = 0
    for level, sizes in zip(groups, lengths, strict=True):
        pages = pool.pages[entry : entry + len(sizes)]
        starts = [sum(level[:i]) for i in range(len(level) + 1)]
        arrays[0].append(sums([sum(rows[a:b]) for a, b in pairwise(starts)]))
        arrays[1].append(sums([len(p) for p in pages]))
        arrays[2].append(i32([page for row in pages for page in row]))
        arrays[3].append(i32([(n - 1) % pool.page_size + 1 for n in sizes]))
        owners.append([entry + i for i, members in enumerate(level) for _ in range(members)])
        entry += len(sizes)
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(levels, arena())
    wrapper.plan(*arrays, *pool.sizes, causal=causal, q_data_type=HALF)
    wants = []
    for i, q in enumerate(pool.q.split(rows)):
        k = torch.cat([pool.tokens(pool.k, owner[i]) for owner in owners])
        v = torch.cat([pool.tokens(pool.v, owner[i]) for owner in owners])
        wants.append(attention(q, k, v, Rule(causal=causal))[0])
    form = pick.choice(["tuple", "stacked"])
    close(wrapper.run(pool.q, pool.cache(form, "NHD")), torch.cat(wants), HALF)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_decode_over_shared_prefixes(seed: int) -> None:
    pick = random.Random(seed)
    own = [pick.choice([1, 3, pick.randint(1, 40)]) for _ in range(pick.randint(1, 6))]
    check(pick, pick.choice([2, 3]), [1] * len(own), own, causal=False)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1))
def test_append_is_causal_in_the_last_level_only(seed: int) -> None:
    """Rows see all of what is shared and, causally, their request's own KV, which holds the new rows."""
    pick = random.Random(seed)
    rows = [pick.randint(1, 20) for _ in range(pick.randint(1, 4))]
    own = [n + pick.choice([0, 1, pick.randint(0, 30)]) for n in rows]
    check(pick, pick.choice([2, 3]), rows, own, causal=True)
