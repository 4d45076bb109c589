"""Cases of problem 313. Probabilities are multiples of 1/256: sums of them are exact."""

import torch

from judge.core.rng import Rng


def case(parts, k, p, order):
    return {"probs": torch.tensor(parts, dtype=torch.float32) / sum(parts), "k": k, "p": p, "order": order}


def drawn(rng, size, k, p, order):
    """Different parts that add up to 256."""
    while True:
        cuts = sorted(rng.sample(range(1, 256), size - 1))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, 256], strict=True)]
        if len(set(parts)) == size:
            return case(parts, k, p, order)


def public():
    return {
        "top_k_first": case([128, 64, 32, 16, 16], 2, 0.625, "top_k_first"),
        "joint": case([128, 64, 32, 16, 16], 2, 0.625, "joint"),
        "crossing": case([100, 60, 50, 46], 4, 0.5, "joint"),
    }


NOTES = {
    "top_k_first": {
        "zh": "top-k 留下 1/2 和 1/4，归一化成 2/3 和 1/3；0.667 已经够 0.625，只剩第一个。",
        "en": "Top-k leaves 1/2 and 1/4, which become 2/3 and 1/3; 0.667 is enough for 0.625: only the first stays.",
    },
    "joint": {
        "zh": "都看原来的分布：1/2 不够 0.625，要加上 1/4，两个都留下。",
        "en": "Both look at the original: 1/2 is not enough for 0.625, so 1/4 is needed too, and both stay.",
    },
    "crossing": {
        "zh": "让累计越过 p 的那一个也要留下。",
        "en": "The one with which the sum passes p stays too.",
    },
}


def fixed():
    rng = Rng(b"fixed 313")
    base = [90, 60, 40, 30, 20, 10, 6]
    return {
        "first": case(base, 3, 0.75, "top_k_first"),
        "same_jointly": case(base, 3, 0.75, "joint"),
        "k_decides": case(base, 2, 0.99, "top_k_first"),
        "k_decides_jointly": case(base, 2, 0.99, "joint"),
        "p_decides": case(base, 6, 0.3, "top_k_first"),
        "p_decides_jointly": case(base, 6, 0.3, "joint"),
        "k_is_one": case(base, 1, 0.5, "top_k_first"),
        "k_beyond": case(base, 50, 0.6, "joint"),
        "p_is_one": case(base, 4, 1.0, "top_k_first"),
        "unsorted": case([20, 90, 6, 60, 10, 40, 30], 4, 0.72, "top_k_first"),
        "unsorted_jointly": case([20, 90, 6, 60, 10, 40, 30], 4, 0.72, "joint"),
        "drawn": drawn(rng, 12, 6, 0.55, "top_k_first"),
    }


def teach():
    return {
        "two_of_three": case([2, 1, 1], 2, 0.5, "top_k_first"),
        "renormalise": case([4, 3, 1], 2, 0.55, "top_k_first"),
        "joint": case([4, 3, 1], 2, 0.55, "joint"),
        "k": case([4, 3, 1], 1, 1.0, "joint"),
        "p": case([5, 2, 1], 3, 0.5, "joint"),
        "unsorted": case([1, 2, 5], 2, 0.6, "top_k_first"),
    }


def generate(rng):
    size = rng.integer(3, 10)
    p = rng.choice([0.2, 0.45, 0.7, 0.9, 1.0]) + (0.0 if rng.chance(1, 2) else -0.03)
    return drawn(rng, size, rng.integer(1, size + 1), p, rng.choice(["top_k_first", "joint"]))


FEATURES = {
    "first": {"zh": "顺序是 top_k_first", "en": "the order is top_k_first"},
    "both": {"zh": "p 小于 1", "en": "p is below 1"},
}


def features(inputs):
    return {"first": inputs["order"] == "top_k_first", "both": inputs["p"] < 1}
