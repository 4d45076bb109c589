"""Cases of problem 191: heads and ranks as models have them, with small heads."""


def case(qo, kv, head_dim, rank, size):
    return {"num_qo_heads": qo, "num_kv_heads": kv, "head_dim": head_dim, "rank": rank, "size": size}


def public():
    return {
        "four_ranks": case(4, 2, 1, 2, 4),
        "two_ranks": case(4, 2, 2, 1, 2),
        "one_rank": case(2, 1, 2, 0, 1),
    }


NOTES = {
    "four_ranks": {"zh": "4 张卡、2 个 KV 头：两张卡共有一个。", "en": "4 GPUs, 2 KV heads: two share one."},
    "two_ranks": {"zh": "正好一张卡一个 KV 头。", "en": "One KV head for each GPU."},
    "one_rank": {"zh": "一张卡：整个矩阵。", "en": "One GPU: the whole matrix."},
}


def fixed():
    return {
        "shared_second": case(8, 2, 2, 1, 4),
        "shared_third": case(8, 2, 2, 2, 4),
        "shared_last": case(16, 4, 1, 15, 16),
        "shared_middle": case(16, 4, 1, 6, 8),
        "one_kv_head": case(8, 1, 2, 3, 4),
        "several_each": case(16, 8, 1, 2, 4),
        "several_last": case(16, 8, 2, 3, 4),
        "multi_head": case(6, 6, 2, 1, 3),
        "first": case(16, 8, 2, 0, 8),
        "equal": case(16, 8, 2, 5, 8),
    }


def teach():
    return {
        "one": case(1, 1, 1, 0, 1),
        "wide_head": case(1, 1, 2, 0, 1),
        "second_of_two": case(2, 2, 1, 1, 2),
        "shared": case(2, 1, 1, 1, 2),
        "shared_pairs": case(4, 2, 1, 1, 4),
        "two_each": case(4, 4, 1, 1, 2),
    }


def generate(rng):
    kv = rng.choice([1, 2, 4, 8])
    size = rng.choice([1, 2, 4, 8])
    qo = max(kv, size) * rng.choice([1, 2])
    return case(qo, kv, rng.integer(1, 4), rng.below(size), size)


FEATURES = {
    "shared": {"zh": "卡比 KV 头多", "en": "there are more GPUs than KV heads"},
    "later": {"zh": "不是第 0 张卡", "en": "the GPU is not the first"},
}


def features(inputs):
    return {"shared": inputs["size"] > inputs["num_kv_heads"], "later": inputs["rank"] > 0}
