"""Cases of problem 93: flat distributions, where the random numbers decide, and such with filtered tokens; the same
requests alone, in other rows, and one step later."""

import torch

from judge.core.rng import Rng


def case(rows, seeds, positions):
    """`rows`: probabilities in 64ths."""
    return {
        "probs": torch.tensor(rows, dtype=torch.float32) / 64,
        "seeds": list(seeds),
        "positions": list(positions),
    }


def flat(seeds, positions, vocab=16):
    return case([[64 // vocab] * vocab] * len(seeds), seeds, positions)


def public():
    return {
        "two_requests": case([[8] * 8, [16, 16, 16, 16, 0, 0, 0, 0]], [7, 42], [3, 10]),
        "same_request_alone": case([[16, 16, 16, 16, 0, 0, 0, 0]], [42], [10]),
    }


NOTES = {
    "two_requests": {
        "zh": "第二个请求有一半的 token 被过滤掉了。",
        "en": "Half of the tokens of the second request are filtered out.",
    },
    "same_request_alone": {"zh": "就是上面的第二个请求。", "en": "The second request of the case above."},
}


def fixed():
    rng = Rng(b"peaked")
    peaked = []
    for _ in range(6):
        top = rng.integer(20, 40)
        rest = 64 - top
        peaked.append(rng.shuffled([top, rest // 2, rest - rest // 2 - rest // 4, rest // 4, 0, 0, 0, 0]))
    return {
        "one_seed_many_positions": flat([5] * 8, range(8)),
        "one_position_many_seeds": flat(range(8), [100] * 8),
        "same_seed_and_position": flat([9, 9, 9], [4, 4, 4]),
        "other_rows": flat([3, 1, 2], [30, 10, 20]),
        "and_back": flat([1, 2, 3], [10, 20, 30]),
        "a_step_later": flat([1, 2, 3], [11, 21, 31]),
        "seed_plus_position": flat([10, 11, 12, 13], [13, 12, 11, 10]),
        "peaked": case(peaked, [4, 8, 15, 16, 23, 42], [1, 2, 3, 4, 5, 6]),
        "filtered": case([[0, 0, 32, 0, 0, 32, 0, 0]] * 4, [1, 2, 3, 4], [7, 7, 8, 8]),
        "one_allowed": case([[0, 64, 0], [0, 0, 64]], [0, 0], [0, 1]),
        "zero_seed": flat([0, 0, 1], [0, 1, 0]),
        "large_seed": flat([2**63 - 1, 2**32, 1], [131071, 5, 5]),
    }


def teach():
    return {
        "one": flat([1], [1], 4),
        "two_seeds": flat([1, 2], [1, 1], 8),
        "two_positions": flat([3, 3], [1, 2], 8),
        "other_position": flat([2], [9], 8),
        "swapped": flat([2, 1], [1, 2], 8),
        "peaked": case([[40, 12, 8, 4]], [5], [2]),
    }


def generate(rng):
    rows = rng.integer(2, 6)
    table = []
    for _ in range(rows):
        allowed = rng.choice([4, 8])
        table.append(rng.shuffled([64 // allowed] * allowed + [0] * (8 - allowed)))
    return case(table, [rng.below(50) for _ in range(rows)], [rng.integer(1, 400) for _ in range(rows)])


FEATURES = {
    "several": {"zh": "不止一个请求", "en": "there is more than one request"},
    "filtered": {"zh": "有概率为 0 的 token", "en": "some probability is 0"},
}


def features(inputs):
    return {"several": len(inputs["seeds"]) > 1, "filtered": bool((inputs["probs"] == 0).any())}
