"""Cases of problem 91: usual logits, logits whose exponential overflows, rows far below others, masked tokens, bfloat16."""

import torch

from judge.core.draw import tensor
from judge.core.rng import Rng

INF = float("inf")


def case(rows, temperatures, dtype="float32"):
    return {
        "logits": torch.tensor(rows, dtype=getattr(torch, dtype)),
        "temperatures": torch.tensor(temperatures, dtype=torch.float32),
    }


def drawn(rng, rows, vocab, temperatures, dtype="float32", scale=2.0):
    return {
        "logits": tensor(rng, [rows, vocab], dtype, scale),
        "temperatures": torch.tensor(temperatures, dtype=torch.float32),
    }


def public():
    return {
        "two_temperatures": case([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [1.0, 0.5]),
        "large_logits": case([[100.0, 99.0, 90.0]], [1.0]),
    }


NOTES = {
    "two_temperatures": {"zh": "温度 1 和 0.5。", "en": "Temperatures 1 and 0.5."},
    "large_logits": {"zh": "exp(100) 超出了 float32。", "en": "exp(100) is beyond float32."},
}


def fixed():
    return {
        "one_row": drawn(Rng(b"a"), 1, 8, [0.7]),
        "three_rows": drawn(Rng(b"b"), 3, 6, [0.5, 1.0, 2.0]),
        "square": drawn(Rng(b"c"), 4, 4, [1.5, 0.25, 1.0, 0.8]),
        "low_temperature": case([[30.0, 29.5, 10.0]], [0.05]),
        "very_negative": case([[-200.0, -201.0, -210.0]], [1.0]),
        "rows_far_apart": case([[300.0, 299.0], [-5.0, -6.0]], [1.0, 1.0]),
        "masked": case([[1.0, -INF, 2.0, -INF], [-INF, 0.5, 0.25, 0.0]], [0.8, 1.25]),
        "bfloat16": drawn(Rng(b"d"), 2, 16, [0.75, 1.3], "bfloat16"),
        "bfloat16_large": case([[90.5, 91.0, 80.0]], [0.7], "bfloat16"),
        "equal": case([[2.0, 2.0, 2.0, 2.0]], [0.3]),
        "high_temperature": drawn(Rng(b"e"), 2, 5, [5.0, 10.0]),
    }


def teach():
    return {
        "two": case([[0.0, 1.0]], [1.0]),
        "half": case([[0.0, 1.0]], [0.5]),
        "two_rows": case([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0]),
        "large": case([[100.0, 100.0]], [1.0]),
        "apart": case([[0.0, 1.0], [200.0, 201.0]], [1.0, 1.0]),
        "bfloat16": case([[0.25, 1.5]], [0.7], "bfloat16"),
    }


def generate(rng):
    rows = rng.integer(1, 4)
    temperatures = [rng.choice([0.25, 0.5, 0.8, 1.0, 1.5]) for _ in range(rows)]
    dtype = rng.choice(["float32", "bfloat16"])
    return drawn(rng, rows, rng.integer(2, 9), temperatures, dtype, rng.choice([1.0, 3.0, 60.0]))


FEATURES = {
    "large": {"zh": "有 logit 除以温度后超过 88", "en": "some logit over its temperature is above 88"},
    "half": {"zh": "logits 是 bfloat16", "en": "logits are bfloat16"},
    "several": {"zh": "不止一行", "en": "there is more than one row"},
}


def features(inputs):
    scaled = inputs["logits"].float() / inputs["temperatures"].unsqueeze(1)
    return {
        "large": bool((scaled > 88).any()),
        "half": inputs["logits"].dtype == torch.bfloat16,
        "several": len(scaled) > 1,
    }
