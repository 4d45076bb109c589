"""Cases of problem 310."""

from judge.core.rng import Rng


def case(num_pages, max_blocks, min_chunk=1):
    return {"num_pages": list(num_pages), "max_blocks": max_blocks, "min_chunk": min_chunk}


def public():
    return {
        "one_long_request": case([100], 8),
        "long_and_short": case([64, 4, 4], 6),
        "fits_uncut": case([3, 5, 2], 3),
        "smallest_allowed": case([20, 20], 64, 8),
    }


NOTES = {
    "one_long_request": {
        "zh": "100 页、8 块：每块 13 页，正好 8 块；12 页就要 9 块。",
        "en": "100 pages in 8 chunks: 13 pages each; with 12 there would be 9.",
    },
    "long_and_short": {
        "zh": "短请求各占一块，长请求还剩 4 块：每块 16 页。",
        "en": "The short requests take one each, 4 are left for the long one: 16 pages.",
    },
    "fits_uncut": {
        "zh": "一块也不能多：谁都不切，块就是最长的请求。",
        "en": "None to spare: nobody is cut, and the chunk is the longest request.",
    },
    "smallest_allowed": {"zh": "块再小也不能小于 min_chunk。", "en": "A chunk is never below min_chunk."},
}


def fixed():
    rng = Rng(b"fixed 310")
    return {
        "empty_requests": case([0, 0, 30], 6),
        "all_empty": case([0, 0], 4),
        "exactly_as_many": case([16, 16], 8),
        "one_over": case([17, 16], 8),
        "min_chunk_above_all": case([3, 4], 16, 8),
        "min_chunk_needs_more": case([90, 10], 7, 4),
        "many_short": case([1] * 12, 12),
        "many_short_one_long": case([1] * 10 + [333], 16),
        "plenty": case([7, 9, 13], 1000),
        "huge": case([50_000, 3], 132),
        "not_a_power_of_two": case([45, 7, 23], 11),
        "drawn": case([rng.integer(0, 200) for _ in range(9)], 40, 2),
    }


def teach():
    return {
        "two_halves": case([4], 2),
        "no_room": case([4], 1),
        "odd": case([5], 2),
        "empty": case([0, 6], 3),
        "least": case([6], 6, 2),
        "three": case([6, 1], 4),
        "roomy": case([3], 9),
    }


def generate(rng):
    count = rng.integer(1, 8)
    pages = [0 if rng.chance(1, 6) else rng.integer(1, 120) for _ in range(count)]
    return case(pages, count + rng.integer(0, 40), rng.choice([1, 1, 2, 8]))
