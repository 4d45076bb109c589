"""Cases of problem 94: one rank and several, pools larger and smaller than the longest text, nothing left at all."""

GIB = 1 << 30


def case(ranks, memory_ratio, page_bytes, page_size, max_positions):
    return {
        "ranks": [tuple(r) for r in ranks],
        "memory_ratio": memory_ratio,
        "page_bytes": page_bytes,
        "page_size": page_size,
        "max_positions": max_positions,
    }


def public():
    return {
        "one_rank": case([(1000, 600)], 0.9, 50, 4, 4096),
        "two_ranks": case([(1000, 600), (960, 560)], 0.9, 50, 4, 32),
    }


NOTES = {
    "one_rank": {
        "zh": "900 - 400 = 500 字节，10 页，去掉 1 页。",
        "en": "900 - 400 = 500 bytes, 10 pages, less 1.",
    },
    "two_ranks": {
        "zh": "第二张卡空闲得少，都照它来。",
        "en": "The second rank has less free, and both go by it.",
    },
}


def fixed():
    return {
        "real": case([(79 * GIB, 78 * GIB)], 0.9, 114688 * 16, 16, 40960),
        "four_ranks": case([(79 * GIB, 63 * GIB)] * 3 + [(77 * GIB, 61 * GIB)], 0.85, 1 << 21, 64, 131072),
        "smallest_first": case([(500, 400), (900, 600)], 0.8, 20, 1, 10),
        "smallest_last": case([(900, 600), (500, 400)], 0.8, 20, 1, 100),
        "heavier_weights": case([(1000, 900), (1000, 300), (1000, 700)], 0.95, 10, 2, 1000),
        "weights_take_all": case([(1000, 80)], 0.9, 10, 1, 100),
        "one_page_only": case([(1000, 110)], 0.9, 10, 4, 100),
        "two_pages": case([(1000, 125)], 0.9, 10, 4, 100),
        "whole_ratio": case([(640, 512)], 1.0, 64, 16, 2048),
        "half": case([(4096, 3072)], 0.5, 100, 16, 64),
        "long_model": case([(4096, 4000)], 0.5, 100, 1, 1 << 20),
        "pages_above_positions": case([(100_000, 90_000)], 0.9, 10, 1, 100),
    }


def teach():
    return {
        "small": case([(100, 80)], 0.5, 10, 1, 100),
        "page_size": case([(100, 80)], 0.5, 10, 4, 100),
        "short_model": case([(100, 80)], 0.5, 5, 4, 7),
        "second_rank": case([(100, 80), (100, 70)], 0.5, 5, 1, 100),
        "nothing": case([(100, 10)], 0.5, 10, 1, 100),
    }


def generate(rng):
    ranks = []
    for _ in range(rng.integer(1, 4)):
        before = 64 * rng.integer(50, 200)
        ranks.append((before, before - 64 * rng.integer(1, 20)))
    return case(
        ranks,
        rng.choice([0.5, 0.75, 0.875]),
        rng.integer(10, 100),
        rng.choice([1, 4, 16]),
        rng.integer(16, 600),
    )


FEATURES = {
    "several": {"zh": "不止一张卡", "en": "there is more than one rank"},
    "paged": {"zh": "页大小大于 1", "en": "the page size is greater than 1"},
}


def features(inputs):
    return {"several": len(inputs["ranks"]) > 1, "paged": inputs["page_size"] > 1}
