"""Cases of problem 222: a qkv tensor, a pool with what earlier requests left, and slots in no order."""

import itertools

from judge.core import draw
from judge.core.rng import Rng


def case(rng, tokens, heads, head_dim, slots, *, group=2, dtype="float32", out_loc=None):
    return {
        "qkv": draw.tensor(rng, (tokens, (group + 2) * heads, head_dim), dtype),
        "pool": draw.tensor(rng, (slots, heads, 2, head_dim), dtype),
        "out_loc": draw.i32(rng.sample(range(slots), tokens) if out_loc is None else out_loc),
    }


def named(name, *sizes, **more):
    return case(Rng(f"222 {name}".encode()), *sizes, **more)


def public():
    return {
        "one_token": named("p1", 1, 1, 2, 2, group=1, out_loc=[1]),
        "two": named("p2", 2, 1, 2, 3, group=1),
    }


NOTES = {
    "one_token": {
        "zh": "qkv 的后两行是 k 和 v，写进 1 号格。",
        "en": "The last two rows of qkv are k and v: they go to slot 1.",
    },
    "two": {"zh": "两个 token，格号没有顺序。", "en": "Two tokens, slots in no order."},
}


def fixed():
    return {
        "unordered": named("f1", 4, 2, 4, 8, out_loc=[6, 1, 7, 2]),
        "ordered": named("f2", 3, 2, 4, 6, out_loc=[2, 3, 4]),
        "reversed": named("f3", 3, 2, 4, 6, out_loc=[5, 4, 3]),
        "whole_pool": named("f4", 5, 1, 4, 5),
        "no_token": named("f5", 0, 2, 4, 3),
        "one_head": named("f6", 3, 1, 8, 6, group=4),
        "many_heads": named("f7", 2, 6, 2, 4, group=1),
        "bfloat16": named("f8", 3, 2, 4, 7, dtype="bfloat16", out_loc=[4, 0, 6]),
        "first_and_last": named("f9", 2, 2, 2, 9, out_loc=[8, 0]),
    }


def teach():
    return {
        "one": named("t1", 1, 1, 1, 1, group=1),
        "second_slot": named("t2", 1, 1, 1, 2, group=1, out_loc=[1]),
        "two": named("t3", 2, 1, 1, 2, group=1, out_loc=[1, 0]),
        "two_heads": named("t4", 1, 2, 1, 2, group=1, out_loc=[1]),
        "gap": named("t5", 2, 1, 1, 4, group=1, out_loc=[1, 3]),
    }


def generate(rng):
    tokens = rng.integer(1, 6)
    dtype = rng.choice(["float32", "bfloat16"])
    sizes = (rng.integer(1, 3), rng.choice([2, 4]), tokens + rng.integer(0, 6))
    return case(rng, tokens, *sizes, group=rng.integer(1, 3), dtype=dtype)


FEATURES = {
    "gaps": {"zh": "格号不是连续递增的", "en": "slots aren't one behind the other"},
    "several": {"zh": "不止一个 token", "en": "there is more than one token"},
}


def features(inputs):
    places = inputs["out_loc"].tolist()
    return {
        "gaps": any(b != a + 1 for a, b in itertools.pairwise(places)),
        "several": len(places) > 1,
    }
