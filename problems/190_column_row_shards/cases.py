"""Cases of problem 190: small matrices, cut for 1 to 4 ranks."""

from judge.core import draw
from judge.core.rng import Rng


def case(rng, tokens, hidden, inner, size):
    return {
        "x": draw.tensor(rng, (tokens, hidden)),
        "up": draw.tensor(rng, (inner, hidden)),
        "up_bias": draw.tensor(rng, (inner,)),
        "down": draw.tensor(rng, (hidden, inner)),
        "down_bias": draw.tensor(rng, (hidden,)),
        "size": size,
    }


def named(name, *sizes):
    return case(Rng(f"190 {name}".encode()), *sizes)


def public():
    return {
        "two_ranks": named("public two", 1, 2, 4, 2),
        "one_rank": named("public one", 2, 2, 2, 1),
    }


NOTES = {
    "two_ranks": {"zh": "两张卡，各算一半。", "en": "Two GPUs, half of the work each."},
    "one_rank": {"zh": "一张卡：加数就是答案。", "en": "One GPU: its summand is the answer."},
}


def fixed():
    shapes = {
        "four_ranks": (3, 4, 8, 4),
        "three_ranks": (2, 5, 9, 3),
        "square": (2, 4, 4, 2),
        "one_each": (2, 3, 4, 4),
        "wide": (1, 2, 16, 2),
        "many_tokens": (7, 3, 6, 2),
        "two_of_six": (4, 6, 6, 3),
        "alone": (3, 4, 6, 1),
    }
    return {name: named(name, *sizes) for name, sizes in shapes.items()}


def teach():
    return {
        "smallest": named("t1", 1, 1, 2, 2),
        "one_rank": named("t2", 1, 1, 1, 1),
        "two": named("t3", 1, 2, 4, 2),
        "three": named("t4", 1, 1, 3, 3),
        "two_tokens": named("t5", 2, 1, 4, 2),
    }


def generate(rng):
    size = rng.choice([1, 2, 3, 4])
    return case(rng, rng.integer(1, 5), rng.integer(1, 6), size * rng.integer(1, 4), size)


FEATURES = {"several": {"zh": "不止一张卡", "en": "there is more than one GPU"}}


def features(inputs):
    return {"several": inputs["size"] > 1}
