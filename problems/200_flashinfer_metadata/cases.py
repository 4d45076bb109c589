"""Cases of problem 200. A case is drawn as an engine would meet it: pages of a shuffled pool handed to rows of a page
table; whatever an earlier request left behind a sequence's end is still there."""

import torch

from judge.core.rng import Rng


def make(page_size, reqs, rows, pages):
    """`reqs`: [(row, extend_len, seq_len)]; `pages[row]`: the page ids of that row, as many as the table is wide."""
    width = max(len(p) for p in pages.values()) * page_size
    table = [[0] * width for _ in range(rows)]
    for row, ids in pages.items():
        table[row] = [page * page_size + slot for page in ids for slot in range(page_size)]
        table[row] += [0] * (width - len(table[row]))
    return {
        "reqs": [tuple(r) for r in reqs],
        "page_table": torch.tensor(table, dtype=torch.int32),
        "page_size": page_size,
    }


def shuffled(seed, page_size, reqs, rows):
    """The same with pages from a shuffled pool; every row is as wide as the longest needs, plus a stale page."""
    rng = Rng(seed.encode())
    width = max(-(-seq_len // page_size) for _, _, seq_len in reqs) + 1
    pool = rng.shuffled(range(1, rows * width + 3))
    pages = {row: pool[row * width : (row + 1) * width] for row in range(rows)}
    return make(page_size, reqs, rows, pages)


def public():
    return {
        "two_requests": make(4, [(0, 2, 5), (1, 1, 6)], 2, {0: [4, 5], 1: [10, 11]}),
        "page_size_one": make(1, [(1, 3, 3), (0, 1, 4)], 2, {0: [7, 2, 9, 4], 1: [5, 1, 8, 3]}),
        "decode": make(4, [(2, 1, 8), (0, 1, 9), (3, 1, 3)], 4, {0: [6, 1, 3], 2: [2, 9, 7], 3: [5, 0, 8]}),
        "cached_prefix": make(2, [(0, 1, 5), (1, 4, 4)], 2, {0: [3, 8, 6], 1: [1, 5, 2]}),
    }


NOTES = {
    "two_requests": {
        "zh": "请求 0 有 5 个 token，本轮算后 2 个；请求 1 有 6 个，本轮算 1 个。",
        "en": "Request 0 has 5 tokens and computes the last 2; request 1 has 6 and computes 1.",
    },
    "page_size_one": {
        "zh": "页大小为 1：页号就是 token 位置，最后一页总是满的。",
        "en": "Page size 1: a page id is a token position, and the last page is always full.",
    },
    "decode": {
        "zh": "纯 decode，行不连续；长度 8 正好落在页边界上。",
        "en": "Decode only, with unordered rows; a length of 8 ends exactly at a page border.",
    },
    "cached_prefix": {
        "zh": "请求 0 的前 4 个 token 已在缓存里，请求 1 没有命中。",
        "en": "The first 4 tokens of request 0 are cached; request 1 has no hit.",
    },
}


def fixed():
    return {
        "border": shuffled("border", 4, [(0, 4, 4), (1, 2, 8), (2, 5, 12)], 3),
        "below_border": shuffled("below", 4, [(1, 3, 3), (0, 7, 7), (2, 1, 11)], 3),
        "above_border": shuffled("above", 4, [(0, 5, 5), (2, 2, 9), (1, 1, 13)], 4),
        "page_size_16": shuffled("sixteen", 16, [(4, 16, 33), (1, 1, 16), (2, 15, 15), (0, 3, 17)], 5),
        "page_size_1": shuffled("one", 1, [(3, 2, 6), (0, 4, 4), (2, 1, 1)], 4),
        "sparse_rows": shuffled("sparse", 4, [(7, 3, 10), (2, 6, 6), (5, 1, 14)], 9),
        "one_request": shuffled("single", 4, [(1, 6, 10)], 3),
        "pure_decode": shuffled("decode", 4, [(6, 1, 9), (0, 1, 16), (3, 1, 2), (5, 1, 7)], 8),
        "all_cached_but_one": shuffled("cached", 16, [(2, 1, 48), (0, 2, 31), (1, 1, 17)], 3),
        "equal_lengths": shuffled("equal", 4, [(2, 3, 7), (0, 3, 7), (1, 3, 7)], 3),
        "one_token": shuffled("tiny", 16, [(1, 1, 1), (0, 1, 2)], 2),
    }


def teach():
    return {
        "one_token": make(2, [(0, 1, 1)], 1, {0: [1]}),
        "full_page": make(2, [(0, 2, 2)], 1, {0: [3]}),
        "page_and_one": make(2, [(0, 3, 3)], 1, {0: [2, 1]}),
        "second_row": make(2, [(1, 1, 2)], 2, {0: [0], 1: [3]}),
        "cached": make(2, [(0, 1, 4)], 1, {0: [1, 3]}),
        "two": make(2, [(0, 2, 3), (1, 1, 2)], 2, {0: [3, 1], 1: [2, 4]}),
        "two_page_one": make(1, [(0, 1, 2), (1, 2, 2)], 2, {0: [3, 1], 1: [2, 4]}),
        "rows_swapped": make(2, [(1, 1, 3), (0, 3, 3)], 2, {0: [3, 1], 1: [2, 4]}),
        "three": make(2, [(2, 1, 3), (0, 1, 4), (1, 2, 2)], 3, {0: [5, 2], 1: [1, 0], 2: [4, 3]}),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4, 8, 16])
    rows = rng.integer(2, 8)
    reqs = []
    for row in rng.sample(range(rows), rng.integer(1, min(5, rows))):
        seq_len = (
            max(1, rng.integer(0, 4) * page_size + rng.integer(-1, 1))
            if rng.chance(1, 2)
            else rng.integer(1, 40)
        )
        extend_len = 1 if rng.chance(1, 3) else rng.integer(1, seq_len)
        reqs.append((row, extend_len, seq_len))
    width = max(-(-seq_len // page_size) for _, _, seq_len in reqs) + rng.integer(0, 2)
    pool = rng.shuffled(range(rows * width + rng.integer(0, 9)))
    return make(page_size, reqs, rows, {row: pool[row * width : (row + 1) * width] for row in range(rows)})


FEATURES = {
    "page_border": {
        "zh": "有长度正好是页大小的整数倍的请求",
        "en": "a length is a multiple of the page size",
    },
    "cached": {
        "zh": "有命中缓存的请求（extend_len < seq_len）",
        "en": "some request is partly cached (extend_len < seq_len)",
    },
    "paged": {"zh": "页大小大于 1", "en": "the page size is greater than 1"},
    "several": {"zh": "不止一个请求", "en": "there is more than one request"},
    "unordered": {"zh": "请求的行不是 0、1、2、…", "en": "the requests' rows are not 0, 1, 2, ..."},
    "unequal": {"zh": "请求的长度不全相等", "en": "lengths differ"},
}


def features(inputs):
    reqs, page_size = inputs["reqs"], inputs["page_size"]
    lengths = [seq_len for _, _, seq_len in reqs]
    return {
        "page_border": page_size > 1 and any(n % page_size == 0 for n in lengths),
        "cached": any(extend_len < seq_len for _, extend_len, seq_len in reqs),
        "paged": page_size > 1,
        "several": len(reqs) > 1,
        "unordered": [row for row, _, _ in reqs] != list(range(len(reqs))),
        "unequal": len(set(lengths)) > 1,
    }
