"""Cases of problem 206: decode batches over pages of one token, with groups of query heads, empty requests, large scores."""

from itertools import pairwise

from judge.core import draw
from judge.core.rng import Rng


def case(rng, lengths, heads, kv_heads, head_dim=16, scale=1.0, shared=False):
    slots = sum(lengths) + 2
    free = rng.shuffled(range(slots))
    pages = [free[0] if shared and j == 0 else free.pop() for n in lengths for j in range(n)]
    return {
        "q": draw.tensor(rng, (len(lengths), heads, head_dim), scale=scale),
        "k_pool": draw.tensor(rng, (slots, kv_heads, head_dim)),
        "v_pool": draw.tensor(rng, (slots, kv_heads, head_dim)),
        "indptr": draw.indptr(lengths),
        "indices": draw.i32(pages),
    }


def named(name, *given, **more):
    return case(Rng(f"206 {name}".encode()), *given, **more)


def public():
    return {
        "shared_page": named("p1", [2, 1], 2, 1, head_dim=2, shared=True),
        "one": named("p2", [3], 1, 1, head_dim=2),
    }


NOTES = {
    "shared_page": {"zh": "两个请求的第一页是同一页。", "en": "Both requests have the same first page."},
    "one": {"zh": "一个请求，三个 token。", "en": "One request with three tokens."},
}


def fixed():
    return {
        "groups": named("f1", [5, 3], 8, 2),
        "groups_of_two": named("f2", [4, 6, 1], 4, 2),
        "multi_head": named("f3", [5, 2], 3, 3),
        "one_kv_head": named("f4", [7, 4], 4, 1),
        "large_scores": named("f5", [6, 5], 2, 1, scale=100.0),
        "empty_in_the_middle": named("f6", [3, 0, 4], 2, 1),
        "empty_first": named("f7", [0, 5], 4, 2),
        "one_token_each": named("f8", [1, 1, 1], 2, 2),
        "shared": named("f9", [4, 3, 5], 4, 2, shared=True),
        "wide_heads": named("f10", [5], 4, 2, head_dim=64),
    }


def teach():
    return {
        "one_token": named("t1", [1], 1, 1, head_dim=2),
        "two_tokens": named("t2", [2], 1, 1, head_dim=2),
        "two_requests": named("t3", [1, 2], 1, 1, head_dim=2),
        "groups": named("t4", [2], 4, 2, head_dim=2),
        "empty": named("t5", [0, 1], 1, 1, head_dim=2),
        "large": named("t6", [3], 1, 1, head_dim=2, scale=400.0),
    }


def generate(rng):
    kv_heads = rng.choice([1, 2])
    lengths = [rng.choice([0, rng.integer(1, 8), rng.integer(1, 8)]) for _ in range(rng.integer(1, 4))]
    lengths[0] = lengths[0] or 2
    scale = 100.0 if rng.chance(1, 4) else 1.0
    return case(
        rng, lengths, kv_heads * rng.choice([1, 2, 4]), kv_heads, scale=scale, shared=rng.chance(1, 2)
    )


FEATURES = {
    "groups": {"zh": "几个 query 头共用一个 KV 头", "en": "several query heads share a KV head"},
    "empty": {"zh": "有空的请求", "en": "a request is empty"},
    "large": {"zh": "分数很大", "en": "scores are large"},
}


def features(inputs):
    return {
        "groups": inputs["q"].shape[1] > inputs["k_pool"].shape[1],
        "empty": any(a == b for a, b in pairwise(inputs["indptr"].tolist())),
        "large": float(inputs["q"].abs().max()) > 20,
    }
