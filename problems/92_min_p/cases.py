"""Cases of problem 92: probabilities in 64ths and shares in 16ths, so that thresholds are exact and can be met."""

import torch


def case(rows, min_p):
    """`rows`: probabilities in 64ths; `min_p` in 16ths."""
    return {
        "probs": torch.tensor(rows, dtype=torch.float32) / 64,
        "min_p": torch.tensor(min_p, dtype=torch.float32) / 16,
    }


def public():
    return {
        "sure_and_unsure": case([[48, 12, 4, 0], [16, 16, 16, 16]], [4, 4]),
        "at_the_threshold": case([[8, 32, 16, 8]], [8]),
    }


NOTES = {
    "sure_and_unsure": {
        "zh": "同样的 min_p，两行留下的不一样多。",
        "en": "The same min_p keeps more in one row than in the other.",
    },
    "at_the_threshold": {
        "zh": "0.25 恰好等于 0.5 的一半，留下。",
        "en": "0.25 is exactly half of 0.5, and stays.",
    },
}


def fixed():
    return {
        "off": case([[40, 20, 4], [1, 2, 61]], [0, 0]),
        "strict": case([[20, 19, 18, 7]], [15]),
        "rows_of_their_own": case([[32, 16, 8, 8], [32, 16, 8, 8], [32, 16, 8, 8]], [2, 5, 12]),
        "sure_beside_unsure": case([[60, 2, 1, 1], [10, 9, 8, 37], [16, 15, 17, 16]], [2, 4, 4]),
        "flat": case([[4] * 16], [15]),
        "flat_and_lenient": case([[8] * 8], [1]),
        "met_by_two": case([[32, 8, 8, 16]], [4]),
        "one_sure": case([[0, 64, 0]], [8]),
        "one_word": case([[64]], [8]),
        "last_is_largest": case([[2, 6, 14, 42]], [2]),
        "small_share": case([[1, 15, 16, 32], [1, 31, 31, 1]], [1, 1]),
        "share_above_all": case([[14, 13, 13, 12, 12]], [14]),
    }


def teach():
    return {
        "two": case([[48, 16]], [8]),
        "equal_to_it": case([[32, 16, 16]], [8]),
        "flat": case([[32, 32]], [12]),
        "two_rows": case([[48, 16], [32, 32]], [8, 8]),
        "own_share": case([[40, 24], [40, 24]], [0, 15]),
        "flatter_row": case([[60, 4], [24, 40]], [8, 8]),
    }


def generate(rng):
    rows, vocab = rng.integer(1, 4), rng.integer(2, 8)
    table = []
    for _ in range(rows):
        cuts = sorted(rng.below(65) for _ in range(vocab - 1))
        table.append([b - a for a, b in zip([0, *cuts], [*cuts, 64], strict=True)])
    return case(table, [rng.below(16) for _ in range(rows)])


FEATURES = {
    "several": {"zh": "不止一行", "en": "there is more than one row"},
    "off": {"zh": "有 min_p 是 0", "en": "some min_p is 0"},
}


def features(inputs):
    return {"several": len(inputs["probs"]) > 1, "off": bool((inputs["min_p"] == 0).any())}
