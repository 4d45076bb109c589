"""Cases of problem 81: prefills with and without a hit, decodes, single requests."""


def case(*reqs):
    return {"reqs": [tuple(r) for r in reqs]}


def public():
    return {"three_requests": case((3, 5), (0, 3), (5, 6)), "decode": case((4, 5), (9, 10), (1, 2))}


NOTES = {
    "three_requests": {"zh": "本轮分别算 2、3、1 个。", "en": "They compute 2, 3 and 1."},
    "decode": {"zh": "每个请求一行，每一行都是最后一行。", "en": "A row each: every row is a last row."},
}


def fixed():
    return {
        "one_request": case((0, 4)),
        "one_hit": case((6, 9)),
        "one_token": case((0, 1)),
        "two_hits": case((2, 5), (7, 9)),
        "no_hits": case((0, 3), (0, 5), (0, 1)),
        "equal_lengths": case((1, 4), (0, 3), (5, 8)),
        "long_and_short": case((0, 4096), (17, 18), (0, 2)),
        "short_and_long": case((0, 1), (0, 700)),
        "many": case(*[(i, 2 * i + 1) for i in range(12)]),
        "large_decode": case(*[(i, i + 1) for i in range(1, 33)]),
    }


def teach():
    return {
        "one": case((0, 1)),
        "two_tokens": case((0, 2)),
        "hit": case((1, 2)),
        "two_requests": case((0, 2), (0, 1)),
        "two_and_three": case((0, 2), (1, 4)),
        "three": case((1, 3), (0, 1), (2, 4)),
    }


def generate(rng):
    reqs = []
    for _ in range(rng.integer(1, 6)):
        cached = rng.choice([0, rng.integer(1, 40)])
        reqs.append((cached, cached + rng.choice([1, rng.integer(1, 12)])))
    return case(*reqs)


FEATURES = {
    "hit": {"zh": "有命中缓存的请求（cached_len > 0）", "en": "some request has cached_len > 0"},
    "several": {"zh": "不止一个请求", "en": "there is more than one request"},
}


def features(inputs):
    return {"hit": any(c for c, _ in inputs["reqs"]), "several": len(inputs["reqs"]) > 1}
