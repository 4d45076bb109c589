"""Cases of problem 212: decode batches over 32 pages of 4 tokens, filled up to a captured size."""

from judge.core import draw
from judge.core.rng import Rng

PAGE_SIZE, PAGES = 4, 32


def case(rng, lengths, size, dummy_page=None):
    counts = [-(-n // PAGE_SIZE) for n in lengths]
    pool = rng.shuffled(range(PAGES))
    if dummy_page is None:
        dummy_page = pool.pop()
    else:
        pool.remove(dummy_page)
    return {
        "indptr": draw.indptr(counts),
        "indices": draw.i32(pool[: sum(counts)]),
        "last_page_len": draw.i32([(n - 1) % PAGE_SIZE + 1 for n in lengths]),
        "size": size,
        "dummy_page": dummy_page,
    }


def named(name, *given, **more):
    return case(Rng(f"212 {name}".encode()), *given, **more)


def public():
    return {"two_to_four": named("p1", [5, 2], 4, dummy_page=9), "exact": named("p2", [3, 4], 2)}


NOTES = {
    "two_to_four": {
        "zh": "补两个请求，各用 9 号页的 1 个 token。",
        "en": "Two more, each with 1 token of page 9.",
    },
    "exact": {"zh": "不用补。", "en": "Nothing to fill in."},
}


def fixed():
    return {
        "one_to_two": named("f1", [6], 2),
        "one_to_eight": named("f2", [11], 8),
        "three_to_four": named("f3", [9, 1, 4], 4),
        "five_to_eight": named("f4", [3, 8, 7, 1, 12], 8),
        "full_last_pages": named("f5", [4, 8], 4),
        "page_zero_in_use": named("f6", [17, 9], 4, dummy_page=31),
        "dummy_is_zero": named("f7", [5, 5, 5], 4, dummy_page=0),
        "exact_four": named("f8", [1, 2, 3, 4], 4),
        "long_last": named("f9", [2, 30], 4),
        "ones": named("f10", [1, 1], 8),
    }


def teach():
    return {
        "one_to_two": named("t1", [1], 2, dummy_page=3),
        "two_pages": named("t2", [5], 2, dummy_page=3),
        "one_to_three": named("t3", [2], 3, dummy_page=2),
        "exact": named("t4", [2], 1, dummy_page=2),
    }


def generate(rng):
    lengths = draw.lengths(rng, rng.integer(1, 5), PAGE_SIZE, 20)
    size = next(n for n in (1, 2, 4, 8) if n >= len(lengths))
    return case(rng, lengths, size)


FEATURES = {
    "padded": {"zh": "要补", "en": "something is filled in"},
    "dummy_zero": {"zh": "dummy_page 是 0", "en": "dummy_page is 0"},
}


def features(inputs):
    return {
        "padded": inputs["size"] > len(inputs["last_page_len"]),
        "dummy_zero": inputs["dummy_page"] == 0,
    }
