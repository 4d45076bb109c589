"""Cases of problem 204: batches of (cached_len, device_len), all kinds of hits."""

from judge.core import draw


def case(*reqs):
    return {"reqs": [tuple(r) for r in reqs], "kv_indptr": draw.indptr([kv for _, kv in reqs])}


def public():
    return {
        "miss_and_hit": case((0, 4), (3, 5)),
        "decode": case((4, 5), (8, 9), (2, 3)),
        "all_miss": case((0, 3), (0, 5)),
    }


NOTES = {
    "miss_and_hit": {
        "zh": "第一个没命中，第二个命中 3 个。",
        "en": "The first has no hit, the second hits 3.",
    },
    "decode": {"zh": "每个请求一行。", "en": "A row for each request."},
    "all_miss": {
        "zh": "query 和 KV 一样多：就是 kv_indptr。",
        "en": "As many queries as KV: kv_indptr itself.",
    },
}


def fixed():
    return {
        "hit_and_miss": case((3, 5), (0, 4)),
        "one_and_four": case((4, 5), (2, 6)),
        "four_and_one": case((2, 6), (4, 5)),
        "miss_then_one": case((0, 6), (7, 8), (0, 2)),
        "prompts_of_one_token": case((0, 1), (0, 1)),
        "one_token_new_and_old": case((0, 1), (5, 6)),
        "one_request_hit": case((4, 9)),
        "one_request_miss": case((0, 7)),
        "one_request_decode": case((6, 7)),
        "all_hit": case((1, 5), (3, 9), (2, 4)),
        "shortest_is_one": case((0, 1), (0, 6)),
        "equal_rests": case((2, 4), (5, 7)),
        "misses_around_a_hit": case((0, 3), (2, 5), (0, 4)),
    }


def teach():
    return {
        "decode": case((1, 2)),
        "miss": case((0, 2)),
        "hit": case((1, 3)),
        "miss_and_hit": case((0, 2), (1, 3)),
        "hit_and_miss": case((1, 3), (0, 2)),
        "one_and_two": case((1, 2), (1, 3)),
        "two_decodes": case((1, 2), (2, 3)),
        "short_miss": case((0, 1), (0, 2)),
        "one_new_token_each": case((0, 1), (0, 1)),
    }


def generate(rng):
    kind = rng.choice(["decode", "miss", "mixed", "mixed"])
    reqs = []
    for _ in range(rng.integer(1, 5)):
        kv = rng.integer(2, 12)
        cached = {"decode": kv - 1, "miss": 0}.get(kind, rng.choice([0, rng.below(kv)]))
        reqs.append((cached, kv))
    return case(*reqs)


FEATURES = {
    "decode": {"zh": "每个请求只算一个 token", "en": "every request computes one token"},
    "all_miss": {"zh": "全都没命中", "en": "there is no hit at all"},
    "mixed": {"zh": "命中和没命中的混在一起", "en": "hits and misses are mixed"},
}


def features(inputs):
    cached = [c for c, _ in inputs["reqs"]]
    return {
        "decode": all(kv - c == 1 for c, kv in inputs["reqs"]),
        "all_miss": not any(cached),
        "mixed": any(cached) and not all(cached),
    }
