"""Cases of problem 51. `first_column` > 0 makes x a window of a wider buffer, as a slice of a merged projection is."""

import torch

from judge.core.draw import tensor
from judge.core.rng import Rng


def case(seed, shape, dtype="float32", scale=1.0, eps=1e-6, first_column=0):
    rng = Rng(seed.encode())
    return drawn(rng, shape, dtype, scale, eps, first_column)


def drawn(rng, shape, dtype, scale, eps, first_column):
    return {
        "x": tensor(rng, shape, dtype, scale),
        "residual": tensor(rng, shape, dtype, scale),
        "weight": tensor(rng, shape[-1:], dtype),
        "eps": eps,
        "first_column": first_column,
    }


def public():
    return {
        "one_token": {
            "x": torch.tensor([[1.0, 2.0]]),
            "residual": torch.tensor([[2.0, 2.0]]),
            "weight": torch.tensor([1.0, 2.0]),
            "eps": 1e-6,
            "first_column": 0,
        },
        "part_of_a_buffer": {
            "x": torch.tensor([[1.0, -1.0], [0.5, 0.0]]),
            "residual": torch.tensor([[0.0, 3.0], [0.5, 1.0]]),
            "weight": torch.tensor([1.0, 1.0]),
            "eps": 1e-6,
            "first_column": 1,
        },
    }


NOTES = {
    "one_token": {"zh": "两个输入都被写入。", "en": "Both inputs are written."},
    "part_of_a_buffer": {
        "zh": "x 是一块更宽的缓冲区里从第 first_column 列开始的一段。",
        "en": "x is a part of a wider buffer, from column first_column on.",
    },
}


def fixed():
    return {
        "several_tokens": case("a", [5, 8]),
        "wide": case("b", [3, 64]),
        "large_eps": case("c", [4, 8], scale=0.25, eps=0.01),
        "bfloat16": case("d", [8, 32], "bfloat16"),
        "bfloat16_window": case("e", [6, 16], "bfloat16", scale=4.0, first_column=3),
        "window": case("f", [4, 8], first_column=2),
        "no_tokens": case("g", [0, 8]),
        "one_number": case("h", [1, 1], eps=0.25),
        "sum_is_zero": {
            "x": torch.tensor([[1.0, -2.0]]),
            "residual": torch.tensor([[-1.0, 2.0]]),
            "weight": torch.ones(2),
            "eps": 1e-5,
            "first_column": 0,
        },
        "large_residual": {
            "x": torch.full((2, 4), 1.0, dtype=torch.bfloat16),
            "residual": torch.tensor([[257.0, 3.0, 130.0, 1.0]] * 2, dtype=torch.bfloat16),
            "weight": torch.ones(4, dtype=torch.bfloat16),
            "eps": 1e-6,
            "first_column": 0,
        },
    }


def teach():
    return {
        "one": case("t1", [1, 2]),
        "two": case("t2", [2, 2]),
        "window": case("t3", [1, 2], first_column=1),
        "bfloat16": case("t4", [2, 4], "bfloat16", scale=4.0),
    }


def generate(rng):
    dtype = rng.choice(["float32", "bfloat16"])
    # In bfloat16 few numbers: a right program that divides where another multiplies may round one of many apart.
    shape = [rng.integer(1, 6), rng.choice([4, 8, 32])] if dtype == "float32" else [rng.integer(1, 2), 4]
    return drawn(
        rng, shape, dtype, rng.choice([0.5, 1.0, 4.0]), rng.choice([1e-6, 1e-5]), rng.choice([0, 0, 2])
    )


FEATURES = {
    "window": {"zh": "x 是更宽的缓冲区的一部分", "en": "x is part of a wider buffer"},
    "half": {"zh": "类型是 bfloat16", "en": "the type is bfloat16"},
}


def features(inputs):
    return {"window": inputs["first_column"] > 0, "half": inputs["x"].dtype == torch.bfloat16}
