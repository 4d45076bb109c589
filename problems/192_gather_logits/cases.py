"""Cases of problem 192: logits that tell where they belong (request, then token); padding is large."""

import torch


def case(requests, vocab_size, size):
    share = -(-vocab_size // size)
    rows = [
        [
            request * 100.0 + token if (token := rank * share + column) < vocab_size else 9000.0 + column
            for column in range(share)
        ]
        for rank in range(size)
        for request in range(requests)
    ]
    return {
        "gathered": torch.tensor(rows, dtype=torch.float32).reshape(size * requests, share),
        "vocab_size": vocab_size,
        "size": size,
    }


def public():
    return {"two_ranks": case(2, 4, 2), "padded": case(1, 5, 2)}


NOTES = {
    "two_ranks": {
        "zh": "数值写着它的归属：101 是请求 1 的 token 1。",
        "en": "Numbers say where they belong: 101 is token 1 of request 1.",
    },
    "padded": {
        "zh": "5 个 token 分给两张卡：最后一个是补的。",
        "en": "5 tokens for two GPUs: the last is padding.",
    },
}


def fixed():
    return {
        "one_rank": case(3, 5, 1),
        "one_request": case(1, 8, 4),
        "even": case(3, 8, 2),
        "uneven": case(3, 10, 4),
        "very_uneven": case(2, 9, 4),
        "square": case(2, 4, 2),
        "requests_as_ranks": case(4, 12, 4),
        "three_ranks": case(5, 7, 3),
        "no_request": case(0, 6, 2),
        "one_token_each": case(3, 4, 4),
    }


def teach():
    return {
        "one": case(1, 1, 1),
        "one_request": case(1, 2, 2),
        "two_requests": case(2, 2, 2),
        "padded": case(1, 3, 2),
        "both": case(2, 3, 2),
    }


def generate(rng):
    size = rng.choice([1, 2, 3, 4])
    return case(rng.integer(1, 5), size * rng.integer(1, 4) + rng.below(size), size)


FEATURES = {
    "padded": {"zh": "词表除不尽", "en": "the vocabulary doesn't come out even"},
    "several": {"zh": "不止一个请求，也不止一张卡", "en": "several requests and several GPUs"},
}


def features(inputs):
    size = inputs["size"]
    return {
        "padded": inputs["vocab_size"] % size != 0,
        "several": size > 1 and len(inputs["gathered"]) > size,
    }
