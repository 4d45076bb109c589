"""Cases of problem 193: models as they are, and small ones."""

QWEN = (28, 1024, 151936, 2)
SMOLLM = (30, 576, 49152, 4)


def case(model, tokens, requests, size):
    layers, hidden, vocab_size, dtype_bytes = model
    return {
        "layers": layers,
        "hidden": hidden,
        "vocab_size": vocab_size,
        "dtype_bytes": dtype_bytes,
        "tokens": tokens,
        "requests": requests,
        "size": size,
    }


def public():
    return {"one_token": case((2, 8, 10, 2), 1, 1, 2), "prefill": case((2, 8, 10, 4), 6, 2, 4)}


NOTES = {
    "one_token": {
        "zh": "2 层：5 个长 8 的向量，每个数 2 字节。",
        "en": "2 layers: 5 vectors of length 8, 2 bytes a number.",
    },
    "prefill": {"zh": "6 个 token，但只要 2 行 logits。", "en": "6 tokens, but 2 rows of logits."},
}


def fixed():
    return {
        "qwen_decode": case(QWEN, 32, 32, 2),
        "qwen_prefill": case(QWEN, 8192, 5, 2),
        "qwen_eight": case(QWEN, 7, 7, 8),
        "smollm": case(SMOLLM, 100, 3, 3),
        "one_gpu": case(QWEN, 16, 16, 1),
        "uneven_vocabulary": case((1, 4, 11, 2), 3, 2, 4),
        "odd_ring": case((1, 5, 9, 1), 1, 1, 3),
        "one_layer": case((1, 16, 32, 4), 9, 1, 2),
        "many_gpus": case(SMOLLM, 2, 1, 16),
    }


def teach():
    return {
        "smallest": case((1, 1, 2, 1), 1, 1, 2),
        "two_bytes": case((1, 1, 2, 2), 1, 1, 2),
        "two_tokens": case((1, 1, 2, 1), 2, 1, 2),
        "two_layers": case((2, 1, 2, 1), 1, 1, 2),
        "uneven": case((1, 1, 3, 1), 1, 1, 2),
        "one_gpu": case((1, 1, 2, 1), 1, 1, 1),
        "three_gpus": case((1, 1, 3, 1), 2, 1, 3),
    }


def generate(rng):
    model = (rng.integer(1, 40), rng.integer(1, 64) * 16, rng.integer(100, 200_000), rng.choice([1, 2, 4]))
    requests = rng.integer(1, 40)
    tokens = requests if rng.chance(1, 2) else requests + rng.integer(1, 4000)
    return case(model, tokens, requests, rng.choice([1, 2, 3, 4, 8]))


FEATURES = {
    "prefill": {"zh": "token 比请求多", "en": "there are more tokens than requests"},
    "one_gpu": {"zh": "只有一张卡", "en": "there is one GPU"},
    "uneven": {"zh": "词表除不尽", "en": "the vocabulary doesn't come out even"},
}


def features(inputs):
    return {
        "prefill": inputs["tokens"] > inputs["requests"],
        "one_gpu": inputs["size"] == 1,
        "uneven": inputs["vocab_size"] % inputs["size"] != 0,
    }
