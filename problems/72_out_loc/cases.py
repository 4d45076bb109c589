"""Cases of problem 72: rows of a page table filled from a shuffled pool, with stale positions behind each end."""

from judge.core.draw import i32, page_table
from judge.core.rng import Rng


def case(seed, reqs, page_size=1):
    rng = Rng(seed.encode())
    return drawn(rng, reqs, page_size)


def drawn(rng, reqs, page_size):
    rows = [row for row, _, _ in reqs]
    table = page_table(rng, [device for _, _, device in reqs], page_size, rows)
    return {"page_table": table, "reqs": [tuple(r) for r in reqs]}


def public():
    return {
        "prefill_and_decode": {
            "page_table": i32([[7, 2, 9, 4, 0, 0], [5, 1, 8, 3, 6, 0]]),
            "reqs": [(1, 2, 5), (0, 3, 4)],
        },
        "page_size_four": {
            "page_table": i32([[8, 9, 10, 11, 4, 5, 6, 7], [0, 1, 2, 3, 16, 17, 18, 19]]),
            "reqs": [(0, 0, 6), (1, 4, 5)],
        },
    }


NOTES = {
    "prefill_and_decode": {"zh": "行号不是 0、1 的顺序。", "en": "Rows are not in order."},
    "page_size_four": {
        "zh": "一页四个位置：11 之后跳到 4。",
        "en": "Pages of four positions: 4 comes after 11.",
    },
}


def fixed():
    return {
        "one_miss": case("a", [(0, 0, 5)]),
        "one_hit": case("b", [(2, 3, 7)]),
        "decode_batch": case("c", [(3, 8, 9), (0, 2, 3), (5, 15, 16)]),
        "rows_descending": case("d", [(4, 1, 4), (2, 0, 3), (1, 2, 6)]),
        "page_size_4": case("e", [(1, 4, 9), (0, 0, 8)], 4),
        "page_size_4_inside": case("f", [(2, 3, 6), (0, 7, 10)], 4),
        "page_size_16": case("g", [(0, 16, 33), (2, 31, 32)], 16),
        "one_token": case("h", [(1, 0, 1)]),
        "all_but_one_cached": case("i", [(0, 11, 12), (1, 5, 6)], 4),
        "equal": case("j", [(3, 2, 5), (1, 2, 5)], 2),
    }


def teach():
    return {
        "one": case("t1", [(0, 0, 1)]),
        "two": case("t2", [(0, 0, 2)]),
        "hit": case("t3", [(0, 1, 2)]),
        "second_row": case("t4", [(1, 0, 2)]),
        "rows_swapped": case("t5", [(1, 0, 2), (0, 0, 1)]),
        "hit_of_two": case("t6", [(0, 1, 3)]),
        "page_size_2": case("t7", [(0, 1, 4)], 2),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4])
    reqs = []
    for row in rng.sample(range(6), rng.integer(1, 4)):
        cached = rng.choice([0, rng.integer(1, 12)])
        reqs.append((row, cached, cached + rng.choice([1, rng.integer(1, 8)])))
    return drawn(rng, reqs, page_size)


FEATURES = {
    "hit": {"zh": "有命中缓存的请求（cached_len > 0）", "en": "some request has cached_len > 0"},
    "unordered": {"zh": "请求的行不是 0、1、2、…", "en": "the requests' rows are not 0, 1, 2, ..."},
}


def features(inputs):
    reqs = inputs["reqs"]
    return {
        "hit": any(cached for _, cached, _ in reqs),
        "unordered": [row for row, _, _ in reqs] != list(range(len(reqs))),
    }
