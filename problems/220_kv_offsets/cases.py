"""Cases of problem 220: the layouts that pools come in, small ones and such as a large GPU holds (offsets only: no
memory is touched)."""

from judge.core import draw


def strides_of(layout, page_size, heads, head_dim):
    """Strides of (page, slot, head, dimension) in elements, and where V begins."""
    block = page_size * heads * head_dim
    return {
        "NHD": ([block, heads * head_dim, head_dim, 1], 0),
        "HND": ([block, head_dim, page_size * head_dim, 1], 0),
        "interleaved": ([2 * block, heads * head_dim, head_dim, 1], block),
        "interleaved_HND": ([2 * block, head_dim, page_size * head_dim, 1], block),
        "transposed": ([block, heads * head_dim, 1, heads], 0),
        "slot_pairs": ([2 * block, 2 * heads * head_dim, head_dim, 1], heads * head_dim),
    }[layout]


def case(out_loc, layout, page_size, heads, head_dim, start=None):
    strides, behind = strides_of(layout, page_size, heads, head_dim)
    return {
        "out_loc": draw.i32(out_loc),
        "strides": strides,
        "start": behind if start is None else start,
        "page_size": page_size,
        "heads": heads,
        "head_dim": head_dim,
    }


def public():
    return {
        "interleaved": case([3, 0], "interleaved", 2, 1, 2),
        "contiguous": case([1], "NHD", 2, 2, 2),
    }


NOTES = {
    "interleaved": {
        "zh": "V 的一半：start 是 4，页的步长是 8。",
        "en": "The half of V: start is 4, a page's stride 8.",
    },
    "contiguous": {"zh": "最普通的布局。", "en": "The plainest layout."},
}


def fixed():
    return {
        "nhd": case([5, 2, 9, 14], "NHD", 4, 2, 3),
        "hnd": case([5, 2, 9, 14], "HND", 4, 2, 3),
        "interleaved_k": case([7, 8], "interleaved", 4, 2, 2, start=0),
        "interleaved_hnd": case([7, 8, 1], "interleaved_HND", 4, 3, 2),
        "transposed": case([6, 3], "transposed", 2, 3, 2),
        "slot_pairs": case([6, 3, 0], "slot_pairs", 2, 2, 2),
        "page_size_one": case([4, 0, 2], "interleaved", 1, 2, 2),
        "second_layer": case([3], "NHD", 2, 2, 2, start=1000),
        "three_billion": case([3_000_001, 2], "NHD", 16, 8, 128),
        "just_above_int32": case([2_097_152, 2_097_151], "NHD", 16, 8, 128),
        "far_start": case([1], "NHD", 1, 1, 2, start=5_000_000_000),
        "no_token": case([], "NHD", 4, 2, 2),
    }


def teach():
    return {
        "one": case([0], "NHD", 1, 1, 1),
        "second": case([1], "NHD", 2, 1, 2),
        "second_page": case([2], "NHD", 2, 1, 1),
        "v": case([0], "interleaved", 1, 1, 1),
        "interleaved": case([1], "interleaved", 1, 1, 1),
        "hnd": case([1], "HND", 2, 2, 1),
        "transposed": case([0], "transposed", 1, 2, 2),
        "large": case([2_147_483_647], "NHD", 1, 1, 2),
    }


def generate(rng):
    layouts = ["NHD", "HND", "interleaved", "interleaved_HND", "transposed", "slot_pairs"]
    page_size = rng.choice([1, 2, 4, 16])
    out_loc = [rng.below(64) for _ in range(rng.integer(1, 5))]
    if rng.chance(1, 3):
        out_loc.append(1_000_000_000 + rng.below(1000))
    start = rng.below(1000) if rng.chance(1, 3) else None
    return case(out_loc, rng.choice(layouts), page_size, rng.integer(1, 3), rng.integer(2, 4), start)


FEATURES = {
    "large": {"zh": "有偏移超过 int32 的最大值", "en": "an offset is above the largest int32"},
    "not_contiguous": {"zh": "池子不是按形状连续存放的", "en": "the pool isn't contiguous in its shape"},
    "start": {"zh": "start 不是 0", "en": "start isn't 0"},
}


def features(inputs):
    heads, head_dim, page_size = inputs["heads"], inputs["head_dim"], inputs["page_size"]
    plain = [page_size * heads * head_dim, heads * head_dim, head_dim, 1]
    farthest = max(inputs["out_loc"].tolist(), default=0) // page_size * inputs["strides"][0]
    return {
        "large": inputs["start"] + farthest + inputs["strides"][0] > 2**31,
        "not_contiguous": inputs["strides"] != plain,
        "start": inputs["start"] != 0,
    }
