"""Cases of problem 82: squares, rectangles, and the single row of a decode."""


def case(cached_len, device_len):
    return {"cached_len": cached_len, "device_len": device_len}


def public():
    return {"two_cached": case(2, 5), "no_hit": case(0, 3), "decode": case(4, 5)}


NOTES = {
    "two_cached": {"zh": "3 个 query，5 个 KV。", "en": "3 queries, 5 keys."},
    "no_hit": {"zh": "方的下三角。", "en": "A square with a lower triangle."},
    "decode": {"zh": "一个 query，全都看得见。", "en": "One query, which sees all."},
}


def fixed():
    return {
        "one_token": case(0, 1),
        "square": case(0, 8),
        "one_cached": case(1, 6),
        "half": case(6, 12),
        "mostly_cached": case(14, 16),
        "mostly_new": case(2, 20),
        "long_decode": case(40, 41),
        "two_queries": case(0, 2),
        "two_queries_cached": case(9, 11),
        "page_border": case(16, 32),
    }


def teach():
    return {
        "one": case(0, 1),
        "two": case(0, 2),
        "decode": case(1, 2),
        "one_cached_two_new": case(1, 3),
        "two_cached_two_new": case(2, 4),
        "three": case(0, 3),
    }


def generate(rng):
    cached = rng.choice([0, rng.integer(1, 20)])
    return case(cached, cached + rng.integer(1, 12))


FEATURES = {
    "cached": {"zh": "有命中缓存的前缀", "en": "a prefix is cached"},
    "several": {"zh": "不止一个 query", "en": "there is more than one query"},
}


def features(inputs):
    return {
        "cached": inputs["cached_len"] > 0,
        "several": inputs["device_len"] - inputs["cached_len"] > 1,
    }
