"""Cases of problem 203: batches over a shuffled pool; a request is (row, extend_len, seq_len)."""

from judge.core import draw
from judge.core.rng import Rng


def case(rng, reqs, page_size):
    """The table has rows enough for every row that is named, and stale positions behind each sequence."""
    rows = max(row for row, _, _ in reqs) + 1
    longest = max(seq_len for _, _, seq_len in reqs)
    return {
        "reqs": [tuple(r) for r in reqs],
        "page_table": draw.page_table(rng, [longest] * rows, page_size),
        "page_size": page_size,
    }


def named(name, reqs, page_size):
    return case(Rng(f"203 {name}".encode()), reqs, page_size)


def public():
    return {
        "two_requests": named("p1", [(1, 2, 5), (0, 1, 3)], 2),
        "decode": named("p2", [(0, 1, 4), (2, 1, 5)], 4),
    }


NOTES = {
    "two_requests": {
        "zh": "第 1 行有 5 个 token，占 3 页；第 0 行占 2 页，补到 3 列。",
        "en": "Row 1 has 5 tokens in 3 pages; row 0 has 2 pages, and its line is filled up to 3.",
    },
    "decode": {
        "zh": "各算一个 token；长度 4 正好一页。",
        "en": "One token each; a length of 4 is just a page.",
    },
}


def fixed():
    return {
        "at_borders": named("f1", [(0, 4, 8), (1, 3, 7), (2, 5, 9)], 4),
        "page_size_one": named("f2", [(2, 2, 5), (0, 3, 3)], 1),
        "page_size_16": named("f3", [(1, 16, 33), (0, 1, 16), (2, 17, 17)], 16),
        "no_cache": named("f4", [(0, 6, 6), (1, 3, 3)], 4),
        "sparse_rows": named("f5", [(5, 1, 9), (2, 1, 4), (6, 1, 13)], 4),
        "one_request": named("f6", [(1, 3, 11)], 4),
        "long_second": named("f7", [(0, 1, 2), (1, 9, 17)], 4),
        "most_new_in_the_middle": named("f8", [(0, 2, 9), (2, 7, 8), (1, 3, 12)], 2),
        "equal": named("f9", [(1, 2, 6), (0, 2, 6)], 2),
    }


def teach():
    return {
        "one_page": named("t1", [(0, 1, 1)], 2),
        "two_pages": named("t2", [(0, 1, 3)], 2),
        "full_page": named("t3", [(0, 2, 2)], 2),
        "second_row": named("t4", [(1, 1, 2)], 2),
        "two": named("t5", [(0, 1, 2), (1, 2, 3)], 2),
        "swapped": named("t6", [(1, 1, 3), (0, 2, 2)], 2),
        "page_size_one": named("t7", [(0, 1, 2)], 1),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4, 16])
    reqs = []
    for row in rng.sample(range(5), rng.integer(1, 4)):
        seq_len = draw.length(rng, page_size, 30)
        reqs.append((row, 1 if rng.chance(1, 3) else rng.integer(1, seq_len), seq_len))
    return case(rng, reqs, page_size)


FEATURES = {
    "paged": {"zh": "页大小大于 1", "en": "the page size is above 1"},
    "cached": {"zh": "有命中缓存的请求", "en": "some request is partly cached"},
    "unordered": {"zh": "行不是 0、1、2、…", "en": "rows aren't 0, 1, 2, ..."},
    "several": {"zh": "不止一个请求", "en": "there are several requests"},
}


def features(inputs):
    reqs = inputs["reqs"]
    return {
        "paged": inputs["page_size"] > 1,
        "cached": any(extend_len < seq_len for _, extend_len, seq_len in reqs),
        "unordered": [r[0] for r in reqs] != list(range(len(reqs))),
        "several": len(reqs) > 1,
    }
