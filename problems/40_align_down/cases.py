"""Cases of problem 40: lengths inside pages, at their borders and one off, with page sizes that are no powers of two."""


def case(n, page_size):
    return {"n": n, "page_size": page_size}


def public():
    return {"inside_a_page": case(11, 4), "at_a_border": case(8, 4), "less_than_a_page": case(3, 16)}


NOTES = {
    "inside_a_page": {"zh": "第三页没满。", "en": "The third page is not full."},
    "at_a_border": {"zh": "正好两页，一个 token 也不少。", "en": "Exactly two pages: nothing is taken off."},
    "less_than_a_page": {"zh": "一页都没满。", "en": "Not one page is full."},
}


def fixed():
    return {
        "zero": case(0, 4),
        "one": case(1, 4),
        "below_border": case(31, 16),
        "border": case(32, 16),
        "above_border": case(33, 16),
        "page_size_1": case(7, 1),
        "page_size_6": case(20, 6),
        "page_size_6_border": case(24, 6),
        "page_size_12": case(40, 12),
        "last_quarter": case(15, 4),
        "beyond_int32": case(5_000_000_003, 16),
        "page_longer_than_text": case(100, 128),
    }


def teach():
    return {
        "zero": case(0, 2),
        "one_of_two": case(1, 2),
        "two_of_two": case(2, 2),
        "three_of_two": case(3, 2),
        "five_of_three": case(5, 3),
        "two_of_one": case(2, 1),
        "three_of_three": case(3, 3),
        "four_of_three": case(4, 3),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 3, 4, 6, 12, 16, 64])
    if rng.chance(1, 2):
        return case(max(0, rng.integer(0, 9) * page_size + rng.integer(-1, 1)), page_size)
    return case(rng.integer(0, 2000), page_size)


FEATURES = {
    "border": {"zh": "n 正好是页大小的倍数", "en": "n is a multiple of the page size"},
    "odd_page": {"zh": "页大小不是 2 的幂", "en": "the page size is no power of two"},
}


def features(inputs):
    n, page_size = inputs["n"], inputs["page_size"]
    return {"border": n % page_size == 0, "odd_page": page_size & (page_size - 1) != 0}
