"""Cases of problem 201: batches over a page table whose pages come from a shuffled pool. A request is [table_idx,
cached_len, device_len]; `padding` holds the dummies that fill a decode batch up."""

import torch

from judge.core.rng import Rng


def table(seed, rows, width, page_size):
    """int32 [rows, width * page_size]: token positions of `width` pages a row, from a shuffled pool."""
    pool = Rng(seed.encode()).shuffled(range(rows * width))
    return torch.tensor(
        [
            [pool[row * width + j] * page_size + slot for j in range(width) for slot in range(page_size)]
            for row in range(rows)
        ],
        dtype=torch.int32,
    )


def batch(reqs, phase="prefill", padding=()):
    return {"reqs": [list(r) for r in reqs], "padding": [list(r) for r in padding], "phase": phase}


def case(seed, reqs, rows, *, width=16, page_size=1, phase="prefill", padding=(), following=None):
    inputs = {
        **batch(reqs, phase, padding),
        "page_table": table(seed, rows, width, page_size),
        "page_size": page_size,
    }
    if following is not None:
        inputs["next"] = following
    return inputs


def straight():
    """The chapter's example: request 0 has positions 16 and on, request 1 has 40 and on."""
    rows = [list(range(16, 32)), list(range(40, 56))]
    inputs = {
        **batch([(0, 3, 5), (1, 5, 6)]),
        "page_table": torch.tensor(rows, dtype=torch.int32),
        "page_size": 1,
    }
    return inputs


def public():
    return {
        "chapter_example": straight(),
        "all_miss": case("public miss", [(1, 0, 3), (0, 0, 4)], 2, width=6),
        "decode": case("public decode", [(2, 4, 5), (0, 2, 3)], 3, width=6, phase="decode"),
        "engine_page_size_4": case("public page", [(0, 4, 6), (1, 0, 4)], 2, width=2, page_size=4),
    }


NOTES = {
    "chapter_example": {
        "zh": "请求 0 命中前 3 个 token，本轮算 2 个；请求 1 前 5 个已在缓存里，本轮算 1 个。",
        "en": "Request 0 has its first 3 tokens cached and computes 2; request 1 has 5 cached and computes 1.",
    },
    "all_miss": {
        "zh": "没有命中：query 和 KV 一样多。",
        "en": "No hit: as many queries as keys.",
    },
    "decode": {
        "zh": "decode：每个请求一个 query，行不连续。",
        "en": "Decode: one query a request, rows out of order.",
    },
    "engine_page_size_4": {
        "zh": "引擎的页大小是 4，后端仍把池子看成一页一个 token。",
        "en": "The engine's page size is 4; the backend still sees the pool as pages of one token.",
    },
}


def fixed():
    return {
        "sparse_decode": case("sparse", [(7, 8, 9), (2, 2, 3), (5, 13, 14)], 8, phase="decode"),
        "padded_decode": case(
            "padded", [(1, 6, 7), (3, 3, 4)], 6, phase="decode", padding=[(5, 0, 1), (5, 0, 1)]
        ),
        "all_hit_permuted": case("hit", [(2, 4, 7), (0, 3, 8), (1, 5, 6)], 3),
        "miss_hit": case("miss hit", [(0, 0, 5), (1, 3, 6)], 2),
        "hit_miss": case("hit miss", [(1, 3, 6), (0, 0, 5)], 3),
        "one_and_four": case("one four", [(1, 4, 5), (0, 2, 6)], 2),
        "four_and_one": case("four one", [(0, 2, 6), (1, 4, 5)], 2),
        "prefill_of_ones": case("ones", [(2, 3, 4), (0, 6, 7)], 3),
        "page_size_4": case("four", [(3, 0, 4), (1, 4, 8), (2, 2, 7), (0, 8, 9)], 4, width=4, page_size=4),
        "page_size_4_decode": case(
            "four decode", [(2, 7, 8), (0, 3, 4), (1, 8, 9)], 3, width=4, page_size=4, phase="decode"
        ),
        "one_request": case("single", [(1, 2, 9)], 2),
        "two_batches": case("sequence", [(1, 2, 6), (0, 3, 5)], 3, following=batch([(2, 1, 7), (0, 2, 9)])),
    }


def teach():
    return {
        "one_token": case("t1", [(0, 0, 1)], 1, width=2),
        "one_miss": case("t2", [(0, 0, 2)], 1, width=3),
        "one_hit": case("t3", [(0, 1, 3)], 1, width=4),
        "second_row": case("t4", [(1, 0, 2)], 2, width=2),
        "two_misses": case("t5", [(0, 0, 2), (1, 0, 1)], 2, width=2),
        "miss_hit": case("t6", [(0, 0, 2), (1, 1, 3)], 2, width=3),
        "hit_miss": case("t7", [(0, 1, 3), (1, 0, 2)], 2, width=3),
        "decode": case("t8", [(1, 1, 2), (0, 2, 3)], 2, width=3, phase="decode"),
        "padded": case("t9", [(0, 1, 2)], 2, width=2, phase="decode", padding=[(1, 0, 1)]),
        "page_size_2": case("t10", [(0, 0, 3)], 1, width=2, page_size=2),
        "page_size_2_decode": case("t11", [(1, 2, 3), (0, 1, 2)], 2, width=2, page_size=2, phase="decode"),
        "two_batches": case("t12", [(0, 1, 3)], 2, width=4, following=batch([(1, 1, 4)])),
    }


def generate(rng):
    page_size = rng.choice([1, 1, 2, 4, 16])
    rows = rng.integer(2, 8)
    width = max(2, 24 // page_size)
    decode = rng.chance(1, 2)
    reqs = []
    for row in rng.sample(range(rows), rng.integer(1, min(4, rows))):
        device_len = rng.integer(2, width * page_size - 1)
        reqs.append(
            (row, device_len - 1 if decode else rng.choice([0, rng.integer(1, device_len - 1)]), device_len)
        )
    padding = [(rows, 0, 1)] * rng.integer(0, 2) if decode else []
    phase = "decode" if decode else "prefill"
    return case(
        str(rng.below(1 << 30)),
        reqs,
        rows + 2,  # as many as the padded batch can have requests: counting rows off must not leave the table
        width=width,
        page_size=page_size,
        phase=phase,
        padding=padding,
    )


FEATURES = {
    "decode": {"zh": "是 decode", "en": "the batch is a decode"},
    "some_hit": {"zh": "有命中缓存的请求（cached_len > 0）", "en": "some request has cached_len > 0"},
    "mixed": {"zh": "命中和没命中的请求混在一起", "en": "requests with and without cached tokens are mixed"},
    "padded": {"zh": "有填充的请求", "en": "the batch is padded"},
    "paged": {"zh": "引擎的页大小大于 1", "en": "the engine's page size is greater than 1"},
    "several": {"zh": "不止一个请求", "en": "there is more than one request"},
    "sequence": {"zh": "先后准备两个 batch", "en": "two batches are prepared one after the other"},
}


def features(inputs):
    cached = [cached_len for _, cached_len, _ in inputs["reqs"]]
    return {
        "decode": inputs["phase"] == "decode",
        "some_hit": any(cached),
        "mixed": any(cached) and not all(cached),
        "padded": bool(inputs["padding"]),
        "paged": inputs["page_size"] > 1,
        "several": len(cached) > 1,
        "sequence": "next" in inputs,
    }
