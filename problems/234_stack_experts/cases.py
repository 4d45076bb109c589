"""Cases of problem 234: checkpoints in shuffled order; each number tells expert, matrix, row and column."""

import torch

from judge.core.rng import Rng


def case(rng, experts, width, hidden, rank, size):
    tensors = {}
    for expert in range(experts):
        for place, kind in enumerate(("gate_proj", "up_proj", "down_proj")):
            rows, columns = (hidden, width) if kind == "down_proj" else (width, hidden)
            values = torch.arange(rows * columns, dtype=torch.float32).reshape(rows, columns)
            tensors[f"experts.{expert}.{kind}"] = values + 1000 * expert + 100 * (place + 1)
    order = rng.shuffled(list(tensors))
    return {
        "tensors": {name: tensors[name] for name in order},
        "num_experts": experts,
        "rank": rank,
        "size": size,
    }


def named(name, *given):
    return case(Rng(f"234 {name}".encode()), *given)


def public():
    return {"second_of_two": named("p1", 2, 2, 1, 1, 2), "one_gpu": named("p2", 2, 1, 2, 0, 1)}


NOTES = {
    "second_of_two": {
        "zh": "千位是专家，百位 1、2、3 是 gate、up、down；这张卡取第 1 行。",
        "en": "Thousands tell the expert, hundreds 1, 2, 3 gate, up, down; this GPU has row 1.",
    },
    "one_gpu": {"zh": "一张卡：不切。", "en": "One GPU: nothing is cut."},
}


def fixed():
    return {
        "twelve_experts": named("f1", 12, 2, 2, 0, 1),
        "eleven_on_two": named("f2", 11, 2, 1, 1, 2),
        "first_of_two": named("f3", 3, 4, 3, 0, 2),
        "last_of_four": named("f4", 2, 8, 2, 3, 4),
        "second_of_three": named("f5", 2, 6, 3, 1, 3),
        "square": named("f6", 3, 4, 4, 1, 2),
        "one_expert": named("f7", 1, 4, 2, 1, 2),
        "one_row_each": named("f8", 2, 4, 3, 2, 4),
    }


def teach():
    return {
        "one": named("t1", 1, 1, 1, 0, 1),
        "two_experts": named("t2", 2, 1, 1, 0, 1),
        "cut": named("t3", 1, 2, 1, 0, 2),
        "cut_second": named("t4", 1, 2, 1, 1, 2),
        "cut_wide": named("t5", 1, 4, 1, 0, 2),
        "eleven": named("t6", 11, 1, 1, 0, 1),
        "square": named("t7", 1, 2, 2, 1, 2),
    }


def generate(rng):
    size = rng.choice([1, 2, 4])
    return case(
        rng, rng.choice([1, 2, 3, 12]), size * rng.integer(1, 2), rng.integer(1, 3), rng.below(size), size
    )


FEATURES = {
    "many": {"zh": "专家多于 10 个", "en": "there are more than 10 experts"},
    "cut": {"zh": "不止一张卡", "en": "there are several GPUs"},
}


def features(inputs):
    return {"many": inputs["num_experts"] > 10, "cut": inputs["size"] > 1}
