"""Cases of problem 303."""

from judge.core.rng import Rng


def case(pages, kv_lens, qo_lens, page_size=4):
    return {"pages": pages, "kv_lens": kv_lens, "qo_lens": qo_lens, "page_size": page_size}


def drawn(rng, shared, tails, page_size=4, stale=0):
    """Requests with `shared` pages in common and then `tails` tokens each; every tail is at least 1."""
    pool = rng.shuffled(range(80))
    common, at, rows = pool[:shared], shared, []
    for tail in tails:
        count = -(-tail // page_size) + stale
        rows.append(common + pool[at : at + count])
        at += count
    lens = [shared * page_size + tail for tail in tails]
    queries = [1 if rng.chance(1, 2) else rng.integer(1, min(tail, 5)) for tail in tails]
    return case(rows, lens, queries, page_size)


def public():
    return {
        "two_share_two": case([[7, 3, 5], [7, 3, 9, 2]], [10, 15], [1, 2]),
        "nothing_shared": case([[4, 1], [2, 6]], [6, 8], [1, 1]),
        "identical_pages": case([[8, 5], [8, 5]], [8, 7], [1, 1]),
    }


NOTES = {
    "two_share_two": {
        "zh": "前两页（8 个 token）是共享的，各自还剩 2 个和 7 个 token。",
        "en": "The first two pages (8 tokens) are shared; 2 and 7 tokens are left.",
    },
    "nothing_shared": {"zh": "第 0 层没有 KV：一个空请求。", "en": "Level 0 has no KV: an empty request."},
    "identical_pages": {
        "zh": "页全都一样，最后一页也要留给各自。",
        "en": "All pages are the same, and the last one still stays each request's own.",
    },
}


def fixed():
    rng = Rng(b"fixed 303")
    return {
        "long_prefix": drawn(rng, 6, [3, 9, 1]),
        "tails_end_at_borders": drawn(rng, 3, [4, 8, 4]),
        "third_differs": case([[1, 2, 3, 4], [1, 2, 3, 5], [1, 6, 7, 8]], [14, 15, 13], [1, 1, 2]),
        "meets_again": case([[1, 2, 3, 9], [1, 5, 3, 8]], [14, 16], [1, 1]),
        "one_is_short": case([[1, 2], [1, 2, 3, 4]], [6, 16], [1, 3]),
        "shortest_ends_at_a_border": case([[1, 2], [1, 2, 3]], [8, 11], [1, 1]),
        "stale_pages": drawn(rng, 2, [5, 2], stale=2),
        "stale_alike": case([[1, 2, 9, 9], [1, 2, 9, 9]], [6, 7], [1, 1]),
        "page_size_one": drawn(rng, 5, [2, 1, 4], page_size=1),
        "page_size_16": drawn(rng, 2, [17, 16], page_size=16),
        "several_queries": drawn(rng, 4, [6, 7, 5, 9]),
        "one_request": case([[3, 1, 2]], [11], [2]),
    }


def teach():
    return {
        "two": case([[1, 2], [1, 3]], [3, 3], [1, 1], 2),
        "none": case([[1], [2]], [1, 2], [1, 1], 2),
        "all_alike": case([[1], [1]], [2, 2], [1, 1], 2),
        "three": case([[1, 2], [1, 3], [4, 5]], [3, 3, 3], [1, 1, 1], 2),
        "queries": case([[1, 2], [1, 3]], [4, 4], [2, 1], 2),
        "uneven": case([[1, 2], [1, 3, 4]], [3, 5], [1, 1], 2),
        "agree_again": case([[1, 2, 9, 4], [1, 3, 9, 5]], [7, 7], [1, 1], 2),
        "left_over": case([[1, 2, 7], [1, 3]], [3, 3], [1, 1], 2),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4, 8])
    tails = [rng.integer(1, 3 * page_size) for _ in range(rng.integer(2, 4))]
    return drawn(rng, rng.integer(0, 4), tails, page_size, stale=rng.integer(0, 1))


FEATURES = {
    "shared": {"zh": "有共享的整页", "en": "some whole page is shared"},
    "several_queries": {"zh": "有请求不止一个 query", "en": "some request has several queries"},
    "three": {"zh": "不止两个请求", "en": "there are more than two requests"},
}


def features(inputs):
    first = {row[0] for row in inputs["pages"]}
    return {
        "shared": len(first) == 1 and min(inputs["kv_lens"]) > inputs["page_size"],
        "several_queries": max(inputs["qo_lens"]) > 1,
        "three": len(inputs["pages"]) > 2,
    }
