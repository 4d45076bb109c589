"""Cases of problem 230: scores without ties, in float32 and bfloat16."""

import torch

from judge.core.rng import Rng


def case(rng, tokens, experts, top_k, renormalize, dtype="float32"):
    """Scores are different multiples of 1/8 in each row, exact in bfloat16."""
    rows = [[n / 8 for n in rng.sample(range(-24, 25), experts)] for _ in range(tokens)]
    return {
        "logits": torch.tensor(rows, dtype=getattr(torch, dtype)).reshape(tokens, experts),
        "top_k": top_k,
        "renormalize": renormalize,
    }


def named(name, *given):
    return case(Rng(f"230 {name}".encode()), *given)


def public():
    return {"two_of_three": named("p1", 2, 3, 2, True), "not_scaled": named("p2", 1, 4, 2, False)}


NOTES = {
    "two_of_three": {"zh": "每行权重的和是 1。", "en": "Each row of weights sums to 1."},
    "not_scaled": {"zh": "不缩放：和小于 1。", "en": "Not scaled: they sum to less than 1."},
}


def fixed():
    return {
        "eight_of_many": named("f1", 3, 16, 8, True),
        "plain": named("f2", 4, 8, 2, False),
        "scaled": named("f3", 4, 8, 2, True),
        "top_one": named("f4", 3, 6, 1, False),
        "top_one_scaled": named("f5", 3, 6, 1, True),
        "all": named("f6", 2, 5, 5, False),
        "half": named("f7", 5, 8, 3, True, "bfloat16"),
        "half_plain": named("f8", 5, 8, 3, False, "bfloat16"),
        "one_token": named("f9", 1, 7, 3, False),
        "square": named("f10", 4, 4, 2, False),
    }


def teach():
    return {
        "one_of_one": named("t1", 1, 1, 1, False),
        "one_of_two": named("t2", 1, 2, 1, False),
        "one_of_two_scaled": named("t3", 1, 2, 1, True),
        "two_of_three": named("t4", 1, 3, 2, True),
        "two_tokens": named("t5", 2, 3, 2, False),
        "half": named("t6", 1, 3, 2, False, "bfloat16"),
    }


def generate(rng):
    experts = rng.integer(2, 12)
    dtype = rng.choice(["float32", "bfloat16"])
    return case(rng, rng.integer(1, 6), experts, rng.integer(1, experts), rng.chance(1, 2), dtype)


FEATURES = {
    "renormalize": {"zh": "要重新归一", "en": "renormalize is True"},
    "plain": {"zh": "不重新归一", "en": "renormalize is False"},
    "half": {"zh": "分数是 bfloat16", "en": "scores are bfloat16"},
}


def features(inputs):
    return {
        "renormalize": inputs["renormalize"],
        "plain": not inputs["renormalize"],
        "half": str(inputs["logits"].dtype) == "torch.bfloat16",
    }
