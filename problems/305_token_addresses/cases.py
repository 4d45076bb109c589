"""Cases of problem 305. Page ids go up to what makes an address leave int32."""

from judge.core import draw
from judge.core.rng import Rng


def case(page_ids, kv_len, page_size=4, num_heads=2, head_dim=8, layout="NHD", head=0):
    return {
        "page_ids": draw.i32(page_ids),
        "kv_len": kv_len,
        "page_size": page_size,
        "num_heads": num_heads,
        "head_dim": head_dim,
        "layout": layout,
        "head": head,
    }


def public():
    return {
        "nhd": case([3, 1], 6, 4, 2, 8, "NHD", 1),
        "hnd": case([3, 1], 6, 4, 2, 8, "HND", 1),
        "one_head": case([5], 3, 4, 1, 16),
    }


NOTES = {
    "nhd": {
        "zh": "一页有 2 × 4 × 2 × 8 = 128 个元素；相邻 token 差 2 × 8 = 16。",
        "en": "A page has 2 × 4 × 2 × 8 = 128 elements; tokens are 2 × 8 = 16 apart.",
    },
    "hnd": {
        "zh": "同样的 cache 换成 HND：相邻 token 只差 8。",
        "en": "The same cache as HND: tokens are only 8 apart.",
    },
}


def fixed():
    rng = Rng(b"fixed 305")
    ids = rng.shuffled(range(12))
    return {
        "shuffled": case(ids[:5], 18, 4, 4, 16, "NHD", 2),
        "shuffled_hnd": case(ids[:5], 18, 4, 4, 16, "HND", 2),
        "full_pages": case(ids[:3], 12, 4, 2, 8, "NHD", 1),
        "full_pages_hnd": case(ids[:3], 12, 4, 2, 8, "HND", 1),
        "page_size_one": case(ids[:6], 6, 1, 3, 8, "NHD", 2),
        "page_size_one_hnd": case(ids[:6], 6, 1, 3, 8, "HND", 2),
        "beyond_int32": case([40_000, 3, 80_000], 40, 16, 8, 128, "NHD", 7),
        "beyond_int32_hnd": case([40_000, 3, 80_000], 40, 16, 8, 128, "HND", 7),
        "stale_pages": case([2, 7, 9, 9], 5, 4, 2, 8, "HND", 0),
        "one_token": case([6], 1, 16, 2, 64, "NHD", 1),
        "nothing": case([1], 0),
    }


def teach():
    return {
        "one_token": case([1], 1, 2, 1, 1),
        "two_tokens": case([1], 2, 2, 2, 1),
        "second_head": case([1], 2, 2, 2, 1, "HND", 1),
        "two_pages": case([2, 0], 3, 2, 1, 2),
        "hnd": case([0, 1], 3, 2, 2, 2, "HND"),
        "far_page": case([1_000_000_000], 1, 1, 2, 1),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4, 16])
    kv_len = draw.length(rng, page_size)
    heads = rng.integer(1, 4)
    pages = rng.sample(range(60), -(-kv_len // page_size) + rng.integer(0, 1))
    layout = rng.choice(["NHD", "HND"])
    return case(pages, kv_len, page_size, heads, rng.choice([8, 16]), layout, rng.below(heads))


FEATURES = {
    "hnd": {"zh": "布局是 HND", "en": "the layout is HND"},
    "several_pages": {"zh": "不止一页", "en": "there is more than one page"},
    "later_head": {"zh": "不是第 0 个头", "en": "it is not head 0"},
}


def features(inputs):
    return {
        "hnd": inputs["layout"] == "HND",
        "several_pages": inputs["kv_len"] > inputs["page_size"],
        "later_head": inputs["head"] > 0,
    }
