"""Cases of problem 83: small pools whose free places hold NaN, rows that end in stale positions."""

import torch

from judge.core.draw import i32, page_table, tensor
from judge.core.rng import Rng


def case(seed, reqs, page_size=4, heads=2, kv_heads=1, dim=4):
    return drawn(Rng(seed.encode()), reqs, page_size, heads, kv_heads, dim)


def drawn(rng, reqs, page_size, heads, kv_heads, dim):
    table = page_table(rng, [device for _, _, device in reqs], page_size, [row for row, _, _ in reqs])
    pages = int(table.max()) // page_size + 1
    shape = [pages, page_size, kv_heads, dim]
    k_pool, v_pool = tensor(rng, shape), tensor(rng, shape)
    used = torch.zeros(pages * page_size, dtype=torch.bool)
    for row, _, device in reqs:
        used[table[row, :device]] = True
    for pool in (k_pool, v_pool):
        pool.flatten(0, 1)[~used] = float("nan")
    total = sum(device - cached for _, cached, device in reqs)
    return {
        "q": tensor(rng, [total, heads, dim]),
        "k_pool": k_pool,
        "v_pool": v_pool,
        "page_table": table,
        "reqs": [tuple(r) for r in reqs],
    }


def public():
    return {
        "one_decode": {
            "q": torch.tensor([[[1.0, 1.0]]]),
            "k_pool": torch.tensor([[[[0.0, 0.0]], [[1.0, 0.0]]], [[[0.0, 1.0]], [[9.0, 9.0]]]]),
            "v_pool": torch.tensor([[[[0.0, 0.0]], [[2.0, 4.0]]], [[[6.0, 8.0]], [[9.0, 9.0]]]]),
            "page_table": i32([[1, 2]]),
            "reqs": [(0, 1, 2)],
        },
        "two_heads_share": case("public", [(1, 2, 4), (0, 0, 1)], 2, 4, 2, 2),
    }


NOTES = {
    "one_decode": {
        "zh": "两个 token 在位置 1 和 2，跨了页。",
        "en": "Two tokens at positions 1 and 2, in different pages.",
    },
    "two_heads_share": {
        "zh": "4 个 query 头，2 个 KV 头；请求的行不按顺序。",
        "en": "4 query heads, 2 KV heads; rows out of order.",
    },
}


def fixed():
    return {
        "prefill": case("a", [(0, 0, 6)]),
        "prefill_with_hit": case("b", [(1, 5, 9)]),
        "decode_batch": case("c", [(2, 6, 7), (0, 10, 11), (3, 1, 2)]),
        "mixed": case("d", [(1, 4, 8), (2, 0, 3), (0, 8, 9)]),
        "four_heads_two_kv": case("e", [(0, 3, 8), (1, 0, 5)], heads=4, kv_heads=2),
        "six_heads_three_kv": case("f", [(2, 4, 6)], heads=6, kv_heads=3, dim=2),
        "as_many_heads": case("g", [(0, 1, 4)], heads=3, kv_heads=3),
        "page_size_1": case("h", [(1, 2, 6), (0, 0, 4)], page_size=1),
        "page_border": case("i", [(0, 4, 8), (1, 8, 12)]),
        "one_token": case("j", [(1, 0, 1)]),
        "wide_head": case("k", [(0, 2, 7)], heads=4, kv_heads=2, dim=16),
    }


def teach():
    return {
        "one": case("t1", [(0, 0, 1)], 1, 1, 1, 2),
        "decode": case("t2", [(0, 1, 2)], 1, 1, 1, 2),
        "prefill": case("t3", [(0, 0, 2)], 2, 1, 1, 2),
        "hit": case("t4", [(0, 1, 3)], 2, 1, 1, 2),
        "second_row": case("t5", [(1, 0, 2)], 1, 1, 1, 2),
        "grouped": case("t6", [(0, 0, 1)], 1, 4, 2, 2),
    }


def generate(rng):
    reqs = []
    for row in rng.sample(range(4), rng.integer(1, 3)):
        cached = rng.choice([0, rng.integer(1, 8)])
        reqs.append((row, cached, cached + rng.integer(1, 5)))
    heads, kv_heads = rng.choice([(2, 1), (4, 2), (2, 2)])
    return drawn(rng, reqs, rng.choice([1, 2, 4]), heads, kv_heads, 4)


FEATURES = {
    "hit": {"zh": "有命中缓存的请求", "en": "some request has cached tokens"},
    "several_queries": {"zh": "有请求不止一个 query", "en": "some request has more than one query"},
    "several_kv_heads": {"zh": "不止一个 KV 头", "en": "there is more than one KV head"},
}


def features(inputs):
    reqs = inputs["reqs"]
    return {
        "hit": any(c for _, c, _ in reqs),
        "several_queries": any(d - c > 1 for _, c, d in reqs),
        "several_kv_heads": inputs["k_pool"].shape[2] > 1,
    }
