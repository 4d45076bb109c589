"""Cases of problem 54: vocabularies that divide and that do not, ids at the borders of the parts. Row r of id t holds
numbers made from t; padding is NaN."""

import torch

from judge.core.draw import i32


def case(ids, vocab_size, rank, tp_size, hidden=2):
    share = -(-vocab_size // tp_size)
    own = range(share * rank, min(share * (rank + 1), vocab_size))
    rows = [[float(t + 1) + column / 4 for column in range(hidden)] for t in own]
    rows += [[float("nan")] * hidden] * (share - len(rows))
    return {
        "ids": i32(ids),
        "shard": torch.tensor(rows, dtype=torch.float32).reshape(share, hidden),
        "vocab_size": vocab_size,
        "rank": rank,
        "tp_size": tp_size,
    }


def public():
    return {
        "middle_rank": case([5, 8, 4, 3], 10, 1, 3),
        "last_rank": case([9, 0, 8], 10, 2, 3),
    }


NOTES = {
    "middle_rank": {"zh": "8 和 3 是别的卡的。", "en": "8 and 3 belong to other ranks."},
    "last_rank": {
        "zh": "这一段只有两个词，后面两行是填充。",
        "en": "This part has two words; the other rows are padding.",
    },
}


def fixed():
    return {
        "rank_0": case([0, 3, 4, 9, 1], 10, 0, 3),
        "borders": case([3, 4, 7, 8], 10, 1, 3),
        "last_borders": case([7, 8, 9, 0], 10, 2, 3),
        "even": case([0, 5, 6, 11], 12, 1, 2),
        "one_rank": case([6, 0, 3, 6], 7, 0, 1),
        "nearly_empty_last": case([8, 0, 2, 5, 7], 9, 3, 4),
        "two_ranks_odd": case([3, 4, 6, 5, 0], 7, 1, 2),
        "two_ranks_odd_first": case([3, 4, 6, 5, 0], 7, 0, 2, hidden=3),
        "nothing_here": case([0, 1, 1], 10, 2, 3),
        "no_tokens": case([], 10, 1, 3),
        "wide": case([99, 75, 74, 50, 26, 25, 100], 101, 3, 4, hidden=1),
        "eleven_on_four": case([2, 3, 5, 6, 8, 9, 10], 11, 2, 4),
    }


def teach():
    return {
        "own": case([0], 2, 0, 2, hidden=1),
        "other": case([1], 2, 0, 2, hidden=1),
        "second_rank": case([1, 0], 2, 1, 2, hidden=1),
        "short_last": case([2, 0], 3, 1, 2, hidden=1),
        "short_last_below": case([1, 2], 3, 1, 2, hidden=1),
        "first_of_uneven": case([1, 2], 3, 0, 2, hidden=1),
        "five_on_three": case([1, 2, 3, 4], 5, 1, 3, hidden=1),
        "empty_rank": case([1, 0], 2, 2, 3, hidden=1),
    }


def generate(rng):
    tp_size = rng.integer(1, 4)
    vocab_size = rng.integer(2 * tp_size * tp_size, 60)
    share = -(-vocab_size // tp_size)
    rank = rng.below(tp_size)
    near = [share * rank - 1, share * rank, share * (rank + 1) - 1, share * (rank + 1)]
    ids = [min(max(0, rng.choice(near)), vocab_size - 1) for _ in range(3)]
    ids += [rng.below(vocab_size) for _ in range(rng.integer(1, 4))]
    return case(ids, vocab_size, rank, tp_size, rng.integer(1, 3))


FEATURES = {
    "uneven": {"zh": "词表不能被卡数整除", "en": "the vocabulary doesn't divide evenly"},
    "last": {"zh": "是最后一张卡", "en": "it is the last rank"},
}


def features(inputs):
    return {
        "uneven": inputs["vocab_size"] % inputs["tp_size"] != 0,
        "last": inputs["rank"] == inputs["tp_size"] - 1,
    }
