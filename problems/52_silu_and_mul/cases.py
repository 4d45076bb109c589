"""Cases of problem 52: one to three dimensions, square ones among them, gates of both signs."""

import torch

from judge.core.draw import tensor
from judge.core.rng import Rng


def case(seed, shape, scale=2.0):
    return {"x": tensor(Rng(seed.encode()), shape, "float32", scale)}


def public():
    return {
        "two_tokens": {"x": torch.tensor([[1.0, 2.0, 10.0, 100.0], [0.0, 3.0, 5.0, -1.0]])},
        "negative_gate": {"x": torch.tensor([[-1.0, -8.0, 2.0, 2.0]])},
    }


NOTES = {
    "two_tokens": {"zh": "n = 2：前两个是门。", "en": "n = 2: the first two are the gate."},
    "negative_gate": {
        "zh": "门是负数：silu 很小，但不是 0。",
        "en": "Negative gates: silu is small, but not 0.",
    },
}


def fixed():
    return {
        "one_dimension": case("a", [8]),
        "square": case("b", [4, 4]),
        "three_dimensions": case("c", [2, 3, 4]),
        "no_tokens": case("d", [0, 8]),
        "narrow": case("e", [5, 2]),
        "wide": case("f", [3, 32]),
        "large": case("g", [4, 8], 30.0),
        "many_tokens": case("h", [16, 6]),
        "not_contiguous": {"x": tensor(Rng(b"i"), [6, 5]).t()},
    }


def teach():
    return {
        "one": {"x": torch.tensor([1.0, 2.0])},
        "negative": {"x": torch.tensor([-1.0, -3.0])},
        "two": {"x": torch.tensor([[1.0, 2.0, 3.0, 5.0]])},
        "two_tokens": {"x": torch.tensor([[1.0, 3.0], [2.0, 5.0]])},
    }


def generate(rng):
    return {"x": tensor(rng, [rng.integer(1, 6), 2 * rng.integer(1, 8)], "float32", rng.choice([1.0, 4.0]))}


FEATURES = {"narrow": {"zh": "最后一维是 2", "en": "the last dimension is 2"}}


def features(inputs):
    return {"narrow": inputs["x"].shape[-1] == 2}
