"""Cases of problem 61: more ranks than heads, fewer, and as many. Each row of a weight says which head it is of."""

import torch


def case(heads, head_dim, rank, tp_size, hidden=2):
    rows = [
        [float(10 * head + row) + column / 4 for column in range(hidden)]
        for head in range(heads)
        for row in range(head_dim)
    ]
    return {"weight": torch.tensor(rows), "num_kv_heads": heads, "rank": rank, "tp_size": tp_size}


def public():
    return {
        "two_heads_four_ranks": case(2, 2, 1, 4),
        "four_heads_two_ranks": case(4, 1, 1, 2),
        "as_many": case(2, 2, 1, 2),
    }


NOTES = {
    "two_heads_four_ranks": {
        "zh": "第 1 张卡和第 0 张卡拿同一个头。",
        "en": "Rank 1 has the same head as rank 0.",
    },
    "four_heads_two_ranks": {"zh": "每张卡两个头。", "en": "Two heads a rank."},
    "as_many": {"zh": "一张卡一个头。", "en": "A head a rank."},
}


def fixed():
    return {
        "rank_0_of_4": case(2, 3, 0, 4),
        "rank_2_of_4": case(2, 3, 2, 4),
        "last_of_4": case(2, 3, 3, 4),
        "rank_3_of_8": case(2, 2, 3, 8),
        "rank_5_of_8": case(4, 2, 5, 8),
        "last_of_8": case(4, 2, 7, 8),
        "one_head": case(1, 4, 6, 8),
        "one_head_rank_0": case(1, 4, 0, 2),
        "eight_heads_four_ranks": case(8, 2, 2, 4),
        "eight_heads_two_ranks": case(8, 1, 1, 2, hidden=3),
        "one_rank": case(4, 2, 0, 1),
        "rank_9_of_16": case(8, 2, 9, 16),
    }


def teach():
    return {
        "one_head": case(1, 1, 1, 2),
        "two_heads": case(2, 1, 1, 4),
        "two_heads_rank_2": case(2, 1, 2, 4),
        "two_each": case(4, 1, 1, 2),
        "as_many": case(2, 1, 1, 2),
        "wide": case(2, 2, 3, 4),
    }


def generate(rng):
    heads = rng.choice([1, 2, 4, 8])
    tp_size = rng.choice([1, 2, 4, 8, 16])
    return case(heads, rng.integer(1, 3), rng.below(tp_size), tp_size, rng.integer(1, 3))


FEATURES = {
    "replicated": {"zh": "卡比 KV 头多", "en": "there are more ranks than KV heads"},
    "first": {"zh": "是第 0 张卡", "en": "it is rank 0"},
}


def features(inputs):
    return {"replicated": inputs["tp_size"] > inputs["num_kv_heads"], "first": inputs["rank"] == 0}
