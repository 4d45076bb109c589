"""Cases of problem 84: rows of a shuffled pool, each with stale positions behind its request's end."""

from judge.core.draw import i32, page_table
from judge.core.rng import Rng


def case(seed, reqs, page_size=1):
    return drawn(Rng(seed.encode()), reqs, page_size)


def drawn(rng, reqs, page_size):
    table = page_table(rng, [n for _, n in reqs], page_size, [row for row, _ in reqs])
    return {
        "page_table": table + 1,
        "reqs": [tuple(r) for r in reqs],
    }  # 0 is what fills up, and nobody's position


def public():
    return {
        "two_requests": {
            "page_table": i32([[7, 3, 9, 8, 1], [5, 6, 2, 4, 10]]),
            "reqs": [(1, 4), (0, 2)],
        },
        "equal": {"page_table": i32([[1, 2, 3], [4, 5, 6]]), "reqs": [(0, 2), (1, 2)]},
    }


NOTES = {
    "two_requests": {"zh": "行不按顺序；L = 4。", "en": "Rows out of order; L = 4."},
    "equal": {"zh": "一样长：没有要补的。", "en": "Equal lengths: nothing is filled in."},
}


def fixed():
    return {
        "one_request": case("a", [(1, 5)]),
        "one_token": case("b", [(0, 1)]),
        "long_and_short": case("c", [(0, 12), (1, 1), (2, 5)]),
        "short_first": case("d", [(2, 1), (0, 9)]),
        "rows_descending": case("e", [(4, 3), (2, 6), (1, 4)]),
        "page_size_4": case("f", [(0, 7), (1, 8), (3, 9)], 4),
        "page_size_16": case("g", [(1, 17), (0, 3)], 16),
        "equal_lengths": case("h", [(3, 4), (0, 4), (1, 4)], 2),
        "many": case("i", [(6, 2), (5, 9), (4, 4), (3, 7), (2, 1), (1, 8), (0, 3)]),
        "differ_by_one": case("j", [(0, 5), (1, 6)]),
    }


def teach():
    return {
        "one": case("t1", [(0, 1)]),
        "two": case("t2", [(0, 2), (1, 1)]),
        "second_row": case("t3", [(1, 2)]),
        "short_first": case("t4", [(0, 1), (1, 3)]),
        "swapped": case("t5", [(1, 1), (0, 2)]),
    }


def generate(rng):
    rows = rng.sample(range(7), rng.integer(1, 5))
    return drawn(rng, [(row, rng.integer(1, 12)) for row in rows], rng.choice([1, 2, 4]))


FEATURES = {
    "unequal": {"zh": "请求的长度不全相等", "en": "lengths differ"},
    "unordered": {"zh": "请求的行不是 0、1、2、…", "en": "the requests' rows are not 0, 1, 2, ..."},
}


def features(inputs):
    reqs = inputs["reqs"]
    return {
        "unequal": len({n for _, n in reqs}) > 1,
        "unordered": [row for row, _ in reqs] != list(range(len(reqs))),
    }
