"""Cases of problem 53: both ways to pair, positions in and out of order, few dimensions and many. Positions stay below
2000, so that float32 angles agree however they are worked out."""

import torch

from judge.core.draw import i32, tensor
from judge.core.rng import Rng


def case(seed, positions, heads, dim, interleaved, base=10000.0, dtype="float32"):
    rng = Rng(seed.encode())
    return {
        "x": tensor(rng, [len(positions), heads, dim], dtype),
        "positions": i32(positions),
        "base": base,
        "interleaved": interleaved,
    }


def easy(interleaved):
    return {
        "x": torch.tensor([[[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0, 3.0, 4.0]]]),
        "positions": i32([0, 1]),
        "base": 100.0,
        "interleaved": interleaved,
    }


def public():
    return {"neox": easy(False), "neighbours": easy(True)}


NOTES = {
    "neox": {
        "zh": "位置 0 不转；位置 1 的两对各转 1 和 0.1 弧度。",
        "en": "Position 0 doesn't turn; at position 1 the pairs turn by 1 and 0.1 radians.",
    },
    "neighbours": {"zh": "同样的数，相邻的配成一对。", "en": "The same numbers, with neighbours paired."},
}


def fixed():
    return {
        "neox_heads": case("a", [3, 4, 5], 2, 8, False),
        "interleaved_heads": case("b", [3, 4, 5], 2, 8, True),
        "position_zero": case("c", [0, 0], 2, 4, False),
        "decode_batch": case("d", [117, 5, 900], 3, 16, False),
        "decode_batch_interleaved": case("e", [117, 5, 900], 3, 16, True),
        "one_pair": case("f", [1, 2, 3], 1, 2, False),
        "large_base": case("g", [700, 1500], 2, 16, False, 1000000.0),
        "square": case("h", [9, 2, 7, 4], 4, 4, True),
        "square_neox": case("i", [9, 2, 7, 4], 4, 4, False),
        "bfloat16": case("j", [1000, 1201, 333], 2, 16, False, dtype="bfloat16"),
        "bfloat16_interleaved": case("k", [1000, 1201, 333], 2, 16, True, dtype="bfloat16"),
        "no_tokens": case("l", [], 2, 8, False),
    }


def teach():
    return {
        "one_pair": case("t1", [1], 1, 2, False, 100.0),
        "two_pairs": case("t2", [1], 1, 4, False, 100.0),
        "two_pairs_interleaved": case("t3", [1], 1, 4, True, 100.0),
        "second_position": case("t4", [5, 2], 1, 4, False, 100.0),
        "bfloat16": case("t5", [1001], 1, 8, False, dtype="bfloat16"),
    }


def generate(rng):
    positions = [rng.below(1200) for _ in range(rng.integer(1, 4))]
    dim = rng.choice([4, 8, 16])
    return {
        "x": tensor(
            rng, [len(positions), rng.integer(1, 3), dim], rng.choice(["float32", "float32", "bfloat16"])
        ),
        "positions": i32(positions),
        "base": rng.choice([10000.0, 500000.0]),
        "interleaved": rng.chance(1, 2),
    }


FEATURES = {
    "interleaved": {"zh": "interleaved 为真", "en": "interleaved is true"},
    "half": {"zh": "类型是 bfloat16", "en": "the type is bfloat16"},
}


def features(inputs):
    return {"interleaved": inputs["interleaved"], "half": inputs["x"].dtype == torch.bfloat16}
