"""Cases of problem 71: positions in any order over the pages of a small pool, in two layouts. `kv` holds the new keys and
values side by side."""

import torch

from judge.core.draw import i32, tensor
from judge.core.rng import Rng


def case(seed, out_loc, pages, page_size, layout="separate", heads=1, dim=2):
    return drawn(Rng(seed.encode()), out_loc, pages, page_size, layout, heads, dim)


def drawn(rng, out_loc, pages, page_size, layout, heads, dim):
    kv = tensor(rng, [len(out_loc), 2, heads, dim]).abs() + 1
    return {"kv": kv, "out_loc": i32(out_loc), "pages": pages, "page_size": page_size, "layout": layout}


def counted(out_loc, pages, page_size, layout):
    """Keys 1, 2, ... and values 101, 102, ..., to be read by eye."""
    tokens = len(out_loc)
    k = torch.arange(1, tokens + 1, dtype=torch.float32).reshape(tokens, 1, 1, 1)
    kv = torch.cat([k, k + 100], dim=1)
    return {"kv": kv, "out_loc": i32(out_loc), "pages": pages, "page_size": page_size, "layout": layout}


def public():
    return {
        "two_tokens": counted([1, 4], 3, 2, "separate"),
        "combined_layout": counted([5, 2, 3], 3, 2, "combined"),
    }


NOTES = {
    "two_tokens": {"zh": "位置 4 是第 2 页的第 0 个位置。", "en": "Position 4 is place 0 of page 2."},
    "combined_layout": {
        "zh": "位置不递增，k_cache 也不连续。",
        "en": "Positions don't ascend, and k_cache is not contiguous.",
    },
}


def fixed():
    return {
        "page_border": case("a", [3, 4, 7, 8], 3, 4),
        "descending": case("b", [9, 6, 1, 0], 3, 4, heads=2),
        "combined_descending": case("c", [11, 5, 4, 2], 3, 4, "combined", heads=2),
        "page_size_1": case("d", [4, 0, 2], 6, 1),
        "page_size_1_combined": case("e", [4, 0, 2], 6, 1, "combined"),
        "no_tokens": case("f", [], 2, 4),
        "one_token_at_end": case("g", [15], 4, 4, "combined", dim=4),
        "whole_pool": case("h", [2, 0, 3, 1, 5, 4], 3, 2),
        "decode_batch": case("i", [17, 3, 30, 8], 8, 4, "combined", heads=2, dim=4),
        "prefill": case("j", [8, 9, 10, 11, 4, 5], 4, 4, heads=2, dim=4),
    }


def teach():
    return {
        "one": counted([0], 1, 1, "separate"),
        "second": counted([1], 1, 2, "separate"),
        "two": counted([1, 0], 1, 2, "separate"),
        "second_page": counted([3], 2, 2, "separate"),
        "combined": counted([2], 2, 2, "combined"),
        "combined_two": counted([3, 0], 2, 2, "combined"),
    }


def generate(rng):
    pages, page_size = rng.integer(2, 5), rng.choice([1, 2, 4])
    out_loc = rng.sample(range(pages * page_size), rng.integer(1, min(6, pages * page_size)))
    return drawn(rng, out_loc, pages, page_size, rng.choice(["separate", "combined"]), rng.integer(1, 2), 2)


FEATURES = {
    "combined": {
        "zh": "layout 是 combined（视图不连续）",
        "en": "the layout is combined (views are not contiguous)",
    },
    "descending": {"zh": "out_loc 不是递增的", "en": "out_loc does not ascend"},
    "paged": {"zh": "页大小大于 1", "en": "the page size is greater than 1"},
}


def features(inputs):
    at = inputs["out_loc"].tolist()
    return {
        "combined": inputs["layout"] == "combined",
        "descending": at != sorted(at),
        "paged": inputs["page_size"] > 1,
    }
