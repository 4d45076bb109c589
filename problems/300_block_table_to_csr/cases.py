"""Cases of problem 300. Rows are padded with 0, with -1 or with what an earlier request left."""

from judge.core import draw
from judge.core.rng import Rng


def make(rng, seq_lens, page_size, padding="stale", spare=2):
    counts = [-(-n // page_size) for n in seq_lens]
    width = max(counts) + spare
    pool = rng.shuffled(range(sum(counts) + 4))
    table, taken = [], 0
    for count in counts:
        fill = {"zero": 0, "minus": -1}.get(padding)
        rest = [rng.choice(pool) if fill is None else fill for _ in range(width - count)]
        table.append(pool[taken : taken + count] + rest)
        taken += count
    return {"block_table": draw.i32(table), "seq_lens": seq_lens, "page_size": page_size}


def given(table, seq_lens, page_size):
    return {"block_table": draw.i32(table), "seq_lens": seq_lens, "page_size": page_size}


def public():
    return {
        "two_requests": given([[4, 5, 0], [10, 11, 12]], [5, 12], 4),
        "page_zero": given([[0, 3], [2, -1]], [8, 1], 4),
        "one_token_pages": given([[7, 2, 9, 9], [5, 9, 9, 9]], [3, 1], 1),
    }


NOTES = {
    "two_requests": {
        "zh": "5 个 token 占 2 页；第一行最后的 0 是补位。",
        "en": "5 tokens take 2 pages; the 0 at the end of row 0 is padding.",
    },
    "page_zero": {"zh": "0 号页是一张真的页。", "en": "Page 0 is a real page."},
    "one_token_pages": {
        "zh": "页大小为 1，补位是上一个请求留下的 9。",
        "en": "Page size 1; the padding is a 9 that an earlier request left.",
    },
}


def fixed():
    rng = Rng(b"fixed 300")
    return {
        "stale": make(rng, [9, 3, 20], 4),
        "zeros": make(rng, [6, 1, 13], 4, "zero"),
        "minus_one": make(rng, [2, 17, 5], 4, "minus"),
        "at_borders": make(rng, [8, 7, 9, 4], 4),
        "empty_request": make(rng, [5, 0, 6], 4, "minus"),
        "first_is_empty": make(rng, [0, 0, 3], 2, "zero"),
        "page_zero_first": given([[0, 5, 5], [3, 0, 0]], [1, 4], 4),
        "page_zero_inside": given([[4, 0, 2, 9]], [11], 4),
        "one_request": make(rng, [31], 16),
        "page_size_one": make(rng, [3, 1, 6], 1),
        "full_rows": make(rng, [12, 12], 4, spare=0),
    }


def teach():
    return {
        "one_token": given([[3, 7]], [1], 2),
        "page_zero": given([[0, 7]], [2], 2),
        "stale": given([[1, 7], [2, 3]], [2, 3], 2),
        "minus_one": given([[1, -1], [2, 3]], [1, 4], 2),
        "zero_padding": given([[1, 0], [2, 3]], [2, 4], 2),
        "empty": given([[5], [4]], [0, 1], 2),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4, 16])
    seq_lens = [0 if rng.chance(1, 6) else n for n in draw.lengths(rng, rng.integer(1, 5), page_size)]
    if not any(seq_lens):
        seq_lens[0] = 3
    return make(rng, seq_lens, page_size, rng.choice(["stale", "zero", "minus"]), rng.integer(0, 3))


FEATURES = {
    "page_zero": {"zh": "有请求用到 0 号页", "en": "some request uses page 0"},
    "empty": {"zh": "有空请求", "en": "some request is empty"},
    "partial": {"zh": "有没装满的最后一页", "en": "some last page is not full"},
}


def features(inputs):
    size = inputs["page_size"]
    used = [
        row[: -(-n // size)].tolist()
        for row, n in zip(inputs["block_table"], inputs["seq_lens"], strict=True)
    ]
    return {
        "page_zero": any(0 in row for row in used),
        "empty": 0 in inputs["seq_lens"],
        "partial": any(n % size for n in inputs["seq_lens"]),
    }
