"""Cases of problem 90: probabilities in 64ths, so that sums are exact and a p can be met to the last bit."""

import torch


def case(rows, top_p):
    """`rows`: probabilities in 64ths; `top_p` as well."""
    return {
        "probs": torch.tensor(rows, dtype=torch.float32) / 64,
        "top_p": torch.tensor(top_p, dtype=torch.float32) / 64,
    }


def public():
    return {
        "two_rows": case([[8, 32, 16, 8], [8, 32, 16, 8]], [45, 48]),
        "crossing": case([[58, 4, 2], [2, 4, 58]], [51, 60]),
    }


NOTES = {
    "two_rows": {"zh": "p 约为 0.7 和恰好 0.75。", "en": "p is about 0.7, and 0.75 exactly."},
    "crossing": {"zh": "第一个就跨过了 p。", "en": "The first token crosses p already."},
}


def fixed():
    return {
        "everything": case([[16, 16, 16, 16], [60, 4, 0, 0]], [64, 64]),
        "tiny_p": case([[10, 20, 30, 4]], [1]),
        "met_exactly": case([[32, 16, 8, 8], [8, 8, 16, 32], [16, 32, 8, 8]], [32, 48, 56]),
        "one_above": case([[32, 16, 8, 8]], [33]),
        "one_below": case([[32, 16, 8, 8]], [31]),
        "ties": case([[16, 16, 16, 16], [12, 20, 20, 12]], [20, 30]),
        "tie_at_the_edge": case([[4, 20, 12, 12, 12, 4]], [25]),
        "rows_of_their_own": case([[40, 14, 10], [40, 14, 10], [40, 14, 10]], [30, 50, 64]),
        "one_token_sure": case([[0, 0, 64, 0]], [32]),
        "one_word_vocabulary": case([[64]], [10]),
        "wide": case([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9], [10, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1]], [40, 22]),
    }


def teach():
    return {
        "first_enough": case([[48, 16]], [32]),
        "exact": case([[48, 16]], [48]),
        "both": case([[48, 16]], [60]),
        "tie": case([[32, 32]], [20]),
        "unsorted": case([[16, 48]], [32]),
        "two_rows": case([[48, 16], [48, 16]], [60, 10]),
        "three": case([[16, 32, 16]], [40]),
    }


def generate(rng):
    rows, vocab = rng.integer(1, 4), rng.integer(2, 9)
    table, top_p = [], []
    for _ in range(rows):
        cuts = sorted(rng.below(65) for _ in range(vocab - 1))
        row = [b - a for a, b in zip([0, *cuts], [*cuts, 64], strict=True)]
        table.append(row)
        ranked = sorted(row, reverse=True)
        exact = sum(ranked[: rng.integer(1, vocab)])
        top_p.append(exact if rng.chance(1, 2) else rng.integer(1, 64))
    return case(table, top_p)


FEATURES = {
    "exact": {"zh": "p 恰好等于前几个的和", "en": "p is met exactly by some sum"},
    "tie": {"zh": "有并列的概率", "en": "some probabilities are equal"},
}


def features(inputs):
    probs, top_p = inputs["probs"], inputs["top_p"]
    sums = probs.sort(dim=-1, descending=True).values.cumsum(dim=-1)
    return {
        "exact": bool((sums == top_p.unsqueeze(1)).any()),
        "tie": any(len(set(row)) < len(row) for row in probs.tolist()),
    }
