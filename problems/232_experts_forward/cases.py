"""Cases of problem 232: small experts, crowded and sparse choices."""

from judge.core import draw
from judge.core.rng import Rng


def case(rng, tokens, top_k, experts, hidden, width, chosen=None):
    import torch

    if chosen is None:
        chosen = [rng.sample(range(experts), top_k) for _ in range(tokens)]
    weights = [[rng.integer(1, 16) / 16 for _ in range(top_k)] for _ in range(tokens)]
    return {
        "x": draw.tensor(rng, (tokens, hidden)),
        "weights": torch.tensor(weights, dtype=torch.float32).reshape(tokens, top_k),
        "experts": torch.tensor(chosen, dtype=torch.int64).reshape(tokens, top_k),
        "gate_up": draw.tensor(rng, (experts, 2 * width, hidden)),
        "down": draw.tensor(rng, (experts, hidden, width)),
    }


def named(name, *given, **more):
    return case(Rng(f"232 {name}".encode()), *given, **more)


def public():
    return {
        "two_tokens": named("p1", 2, 1, 2, 2, 1, chosen=[[1], [0]]),
        "two_choices": named("p2", 1, 2, 3, 2, 1, chosen=[[2, 0]]),
    }


NOTES = {
    "two_tokens": {"zh": "两个 token 各去一个专家。", "en": "Two tokens, an expert each."},
    "two_choices": {
        "zh": "一个 token，两个专家的输出相加。",
        "en": "One token: the outputs of two experts are added.",
    },
}


def fixed():
    return {
        "cycle_of_three": named("f1", 3, 1, 3, 2, 2, chosen=[[2], [0], [1]]),
        "shared_expert": named("f2", 3, 2, 4, 3, 2, chosen=[[1, 3], [0, 1], [1, 2]]),
        "same_pair": named("f3", 4, 2, 4, 3, 2, chosen=[[2, 1]] * 4),
        "sparse": named("f4", 2, 2, 12, 3, 2),
        "all_experts": named("f5", 3, 4, 4, 2, 3),
        "one_token": named("f6", 1, 3, 5, 4, 2),
        "many_tokens": named("f7", 9, 2, 3, 3, 2),
        "wide": named("f8", 3, 2, 4, 2, 6),
        "three_choices": named("f9", 5, 3, 6, 3, 2),
    }


def teach():
    return {
        "one": named("t1", 1, 1, 1, 1, 1),
        "second_expert": named("t2", 1, 1, 2, 1, 1, chosen=[[1]]),
        "two_choices": named("t3", 1, 2, 2, 1, 1, chosen=[[1, 0]]),
        "two_tokens": named("t4", 2, 1, 2, 1, 1, chosen=[[1], [0]]),
        "three": named("t5", 3, 1, 3, 1, 1, chosen=[[2], [0], [1]]),
        "four_pairs": named("t6", 2, 2, 2, 1, 1, chosen=[[1, 0], [0, 1]]),
    }


def generate(rng):
    experts = rng.integer(2, 6)
    top_k = rng.integer(1, min(3, experts))
    return case(rng, rng.integer(1, 6), top_k, experts, rng.integer(2, 4), rng.integer(1, 4))


FEATURES = {
    "choices": {"zh": "每个 token 不止一个专家", "en": "tokens have more than one expert"},
    "tokens": {"zh": "不止一个 token", "en": "there is more than one token"},
}


def features(inputs):
    tokens, top_k = inputs["experts"].shape
    return {"choices": top_k > 1, "tokens": tokens > 1}
