"""Cases of problem 50: three dtypes, values where eps matters, values whose squares leave float16, shapes of one to three
dimensions. The order of roundings shows in bfloat16 and float16 only."""

import torch

from judge.core.draw import tensor
from judge.core.rng import Rng


def case(seed, shape, dtype="float32", scale=1.0, eps=1e-6, transposed=False):
    rng = Rng(seed.encode())
    x = tensor(rng, shape, dtype, scale)
    if transposed:
        x = x.transpose(0, 1)
    return {"x": x, "weight": tensor(rng, [x.shape[-1]], dtype), "eps": eps}


def public():
    return {
        "three_four": {
            "x": torch.tensor([[3.0, 4.0], [-1.0, 1.0]]),
            "weight": torch.tensor([1.0, 2.0]),
            "eps": 1e-6,
        },
        "small_values": {
            "x": torch.tensor([[0.001, -0.002]]),
            "weight": torch.tensor([1.0, 1.0]),
            "eps": 1e-4,
        },
        "bfloat16": case("public", [2, 6], "bfloat16"),
    }


NOTES = {
    "three_four": {
        "zh": "两个 token，每个除以自己的均方根。",
        "en": "Two tokens, each divided by its own root.",
    },
    "small_values": {"zh": "eps 比 mean(x²) 大得多。", "en": "eps is far larger than mean(x²)."},
    "bfloat16": {"zh": "先转回 bfloat16，再乘权重。", "en": "Cast back to bfloat16 first, then the weight."},
}


def fixed():
    return {
        "one_row": case("a", [16]),
        "three_dimensions": case("b", [2, 3, 8]),
        "large_eps": case("c", [4, 8], scale=0.125, eps=0.01),
        "all_zero": {"x": torch.zeros(3, 4), "weight": torch.ones(4), "eps": 1e-5},
        "no_tokens": case("d", [0, 8]),
        "not_contiguous": case("e", [8, 5], transposed=True),
        "bfloat16": case("f", [16, 32], "bfloat16"),
        "bfloat16_large": case("g", [8, 64], "bfloat16", scale=8.0),
        "float16": case("h", [16, 32], "float16"),
        "float16_squares_overflow": case("i", [4, 16], "float16", scale=512.0),
        "width_one": case("j", [5, 1], eps=0.25),
    }


def teach():
    return {
        "two": {"x": torch.tensor([[1.0, 3.0]]), "weight": torch.tensor([1.0, 1.0]), "eps": 0.5},
        "small": {"x": torch.tensor([[0.25, 0.5]]), "weight": torch.tensor([1.0, 2.0]), "eps": 0.25},
        "two_rows": {"x": torch.tensor([[1.0, 2.0], [4.0, 4.0]]), "weight": torch.ones(2), "eps": 1e-6},
        "bfloat16": case("t1", [2, 4], "bfloat16"),
        "float16_large": {
            "x": torch.tensor([[512.0, 256.0]], dtype=torch.float16),
            "weight": torch.ones(2, dtype=torch.float16),
            "eps": 1e-6,
        },
    }


def generate(rng):
    dtype = rng.choice(["float32", "bfloat16", "float16"])
    # Half types: few numbers, since a right program that divides where another multiplies may round one of many apart.
    shape = [rng.integer(1, 6), rng.choice([4, 16, 32])] if dtype == "float32" else [rng.integer(1, 2), 4]
    scale = rng.choice([0.125, 1.0, 4.0])
    return {
        "x": tensor(rng, shape, dtype, scale),
        "weight": tensor(rng, shape[-1:], dtype),
        "eps": rng.choice([1e-6, 1e-5, 0.01]),
    }


FEATURES = {
    "half": {"zh": "类型是 float16 或 bfloat16", "en": "the type is float16 or bfloat16"},
    "eps": {"zh": "eps 不小于 0.001", "en": "eps is at least 0.001"},
}


def features(inputs):
    return {"half": inputs["x"].dtype != torch.float32, "eps": inputs["eps"] >= 1e-3}
