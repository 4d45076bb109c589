"""Cases of problem 141: runs of batches one after another, with gaps in which nothing is launched."""

from itertools import pairwise


def case(*batches):
    """`batches`: at each step, the tokens that the batch launched there will give; None where nothing is launched."""
    return {"batches": [None if b is None else list(b) for b in batches]}


def public():
    return {"one": case([7]), "three": case([5, 6], [8, 9], [3]), "gap": case([4, 1], None, [2])}


NOTES = {
    "one": {
        "zh": "只有一批：最后一步没有可发的，只看 token。",
        "en": "One batch: the last step launches nothing and only looks.",
    },
    "three": {
        "zh": "每一步先发新的，再看上一批。",
        "en": "Each step launches the new one and then looks at the last.",
    },
    "gap": {"zh": "中间一步没有可发的。", "en": "There is nothing to launch at the second step."},
}


def fixed():
    return {
        "two": case([1], [2]),
        "four": case([11, 12, 13], [14, 15, 16], [17, 18], [19]),
        "gap_first": case(None, [6, 7]),
        "two_gaps": case([3], None, None, [4], [5]),
        "gap_last": case([3, 9], [1, 1], None),
        "alternating": case([8], None, [9], None, [10]),
        "same_tokens": case([5, 5], [5, 5], [5, 5]),
        "nothing": case(None, None),
        "long": case([1], [2], [3], [4], [5], [6], [7]),
    }


def teach():
    return {"one": case([7]), "two": case([7], [8]), "gap": case([7], None), "gap_first": case(None, [7])}


def generate(rng):
    steps = [
        None if rng.chance(1, 4) else [rng.integer(1, 90) for _ in range(rng.integer(1, 3))]
        for _ in range(rng.integer(1, 7))
    ]
    return case(*steps)


FEATURES = {
    "gap": {"zh": "有一步没有可发的", "en": "a step launches nothing"},
    "row": {"zh": "有两批一前一后发出", "en": "two batches are launched one after the other"},
}


def features(inputs):
    batches = inputs["batches"]
    return {
        "gap": None in batches,
        "row": any(a is not None and b is not None for a, b in pairwise(batches)),
    }
