"""Cases of problem 80: prefills with and without a hit, decodes, both in one batch."""


def case(*reqs):
    return {"reqs": [tuple(r) for r in reqs]}


def public():
    return {"three_requests": case((3, 5), (0, 3), (5, 6)), "decode": case((4, 5), (9, 10), (1, 2))}


NOTES = {
    "three_requests": {"zh": "命中、没有命中、decode。", "en": "A hit, no hit, a decode."},
    "decode": {"zh": "每个请求一个 token，位置是 device_len - 1。", "en": "A token each, at device_len - 1."},
}


def fixed():
    return {
        "one_request": case((0, 4)),
        "one_hit": case((6, 9)),
        "two_hits": case((2, 5), (7, 9)),
        "no_hits": case((0, 3), (0, 5), (0, 1)),
        "hit_after_miss": case((0, 4), (4, 7)),
        "equal_requests": case((1, 4), (1, 4)),
        "one_token": case((0, 1)),
        "long_decode": case((4095, 4096), (0, 1), (131071, 131072)),
        "prefill_of_one": case((15, 16), (3, 8)),
        "page_borders": case((16, 32), (48, 50), (0, 17)),
    }


def teach():
    return {
        "one": case((0, 1)),
        "two": case((0, 2)),
        "decode": case((1, 2)),
        "hit": case((1, 3)),
        "two_requests": case((0, 2), (0, 1)),
        "hit_and_miss": case((1, 3), (0, 1)),
        "hits": case((1, 2), (2, 4)),
    }


def generate(rng):
    reqs = []
    for _ in range(rng.integer(1, 5)):
        cached = rng.choice([0, rng.integer(1, 40)])
        reqs.append((cached, cached + rng.choice([1, rng.integer(1, 12)])))
    return case(*reqs)


FEATURES = {
    "hit": {"zh": "有命中缓存的请求（cached_len > 0）", "en": "some request has cached_len > 0"},
    "several": {"zh": "不止一个请求", "en": "there is more than one request"},
    "several_tokens": {"zh": "有请求要算不止一个 token", "en": "some request computes more than one token"},
}


def features(inputs):
    reqs = inputs["reqs"]
    return {
        "hit": any(c for c, _ in reqs),
        "several": len(reqs) > 1,
        "several_tokens": any(d - c > 1 for c, d in reqs),
    }
