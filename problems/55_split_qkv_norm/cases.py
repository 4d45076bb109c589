"""Cases of problem 55: numbers of heads for which a cut into thirds is a whole number of heads too, so that this mistake
gives values rather than an error."""

import torch

from judge.core.draw import tensor
from judge.core.rng import Rng

HEADS = [(4, 1), (8, 2), (2, 2), (5, 2), (7, 1), (6, 3)]


def case(seed, tokens, heads, kv_heads, dim, eps=1e-6):
    return drawn(Rng(seed.encode()), tokens, heads, kv_heads, dim, eps)


def drawn(rng, tokens, heads, kv_heads, dim, eps):
    return {
        "qkv": tensor(rng, [tokens, (heads + 2 * kv_heads) * dim]),
        "num_qo_heads": heads,
        "num_kv_heads": kv_heads,
        "q_weight": tensor(rng, [dim]),
        "k_weight": tensor(rng, [dim]),
        "eps": eps,
    }


def public():
    return {
        "four_and_one": {
            "qkv": torch.tensor([[1.0, 1.0, 3.0, 4.0, 0.0, 2.0, -1.0, 1.0, 6.0, 8.0, 5.0, 7.0]]),
            "num_qo_heads": 4,
            "num_kv_heads": 1,
            "q_weight": torch.tensor([1.0, 2.0]),
            "k_weight": torch.tensor([1.0, 1.0]),
            "eps": 1e-6,
        }
    }


NOTES = {"four_and_one": {"zh": "一个 token，每个头两个数。", "en": "One token, two numbers a head."}}


def fixed():
    return {
        "eight_and_two": case("a", 3, 8, 2, 4),
        "as_many": case("b", 2, 2, 2, 4),
        "one_kv_head": case("c", 4, 7, 1, 2),
        "five_and_two": case("d", 1, 5, 2, 8),
        "six_and_three": case("e", 5, 6, 3, 4),
        "large_eps": case("f", 2, 4, 1, 4, 0.5),
        "one_head": case("h", 3, 1, 1, 4),
        "many_tokens": case("i", 12, 4, 1, 2),
        "wide": case("j", 2, 4, 1, 32, 1e-5),
    }


def teach():
    return {
        "one_head": case("t1", 1, 1, 1, 2),
        "two_heads": case("t2", 1, 2, 2, 2),
        "four_and_one": case("t3", 1, 4, 1, 2),
        "two_tokens": case("t4", 2, 4, 1, 2),
        "five_and_two": case("t5", 1, 5, 2, 2),
    }


def generate(rng):
    heads, kv_heads = rng.choice(HEADS)
    return drawn(rng, rng.integer(1, 4), heads, kv_heads, rng.choice([2, 4, 8]), rng.choice([1e-6, 0.01]))


FEATURES = {
    "grouped": {"zh": "query 头比 KV 头多", "en": "there are more query heads than KV heads"},
    "several": {"zh": "不止一个 query 头", "en": "there is more than one query head"},
}


def features(inputs):
    heads, kv_heads = inputs["num_qo_heads"], inputs["num_kv_heads"]
    return {"grouped": heads > kv_heads, "several": heads > 1}
