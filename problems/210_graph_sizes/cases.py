"""Cases of problem 210: batches as decode has them, and a largest size on and off the grid."""


def case(batch_sizes, largest):
    return {"batch_sizes": list(batch_sizes), "largest": largest}


def public():
    return {"up_to_ten": case([1, 3, 9, 10, 11], 10), "no_graphs": case([1, 2], 0)}


NOTES = {
    "up_to_ten": {
        "zh": "11 太大，不用图；3 补到 4，9 补到 10。",
        "en": "11 is too large; 3 becomes 4, 9 becomes 10.",
    },
    "no_graphs": {"zh": "不录：每批都照常跑。", "en": "Nothing is captured: all batches run as they are."},
}


def fixed():
    return {
        "on_grid": case([1, 2, 4, 8, 16, 24], 24),
        "between": case([3, 5, 7, 9, 15, 17, 23], 24),
        "off_grid": case([17, 18, 19, 20], 19),
        "all_too_large": case([40, 33], 32),
        "exactly_largest": case([32, 31], 32),
        "largest_one": case([1, 2, 1], 1),
        "largest_three": case([1, 2, 3, 4], 3),
        "largest_eight": case([4, 5, 8, 9], 8),
        "no_batch": case([], 20),
        "shrinking": case(range(30, 0, -3), 26),
        "same_again": case([5, 5, 5], 16),
    }


def teach():
    return {
        "one": case([1], 1),
        "two": case([2], 2),
        "three": case([3], 4),
        "too_large": case([2], 1),
        "off_grid": case([5], 5),
        "nine": case([9], 12),
        "none": case([1], 0),
        "seventeen": case([17], 32),
    }


def generate(rng):
    largest = rng.choice([8, 16, 32, rng.integer(1, 50)])
    return case([rng.integer(1, largest + 4) for _ in range(rng.integer(1, 8))], largest)


FEATURES = {
    "off_grid": {"zh": "largest 不在格子上", "en": "largest is off the grid"},
    "too_large": {"zh": "有一批比 largest 大", "en": "a batch is above largest"},
}


def features(inputs):
    largest = inputs["largest"]
    return {
        "off_grid": largest not in (0, 1, 2, 4) and largest % 8 != 0,
        "too_large": any(b > largest for b in inputs["batch_sizes"]),
    }
