"""Cases of problem 70: real models and small ones, budgets at a page's border and one byte off."""

QWEN3_0_6B = (28, 16, 8, 128)
QWEN3_32B = (64, 64, 8, 128)
LLAMA_1B = (16, 32, 8, 64)
OLD = (32, 32, 32, 128)


def case(model, page_size, dtype_bytes, tp_size, budget):
    names = ("num_layers", "num_qo_heads", "num_kv_heads", "head_dim")
    return {
        "config": dict(zip(names, model, strict=True)),
        "page_size": page_size,
        "dtype_bytes": dtype_bytes,
        "tp_size": tp_size,
        "budget": budget,
    }


def public():
    return {
        "qwen3_0_6b": case(QWEN3_0_6B, 16, 2, 1, 1 << 30),
        "more_ranks_than_heads": case((2, 8, 2, 4), 4, 2, 4, 1000),
        "two_ranks": case((2, 8, 2, 4), 1, 4, 2, 1000),
    }


NOTES = {
    "qwen3_0_6b": {"zh": "1 GiB，每页 16 个 token。", "en": "1 GiB, 16 tokens a page."},
    "more_ranks_than_heads": {
        "zh": "2 个 KV 头，4 张卡：每张卡一个头。",
        "en": "2 KV heads on 4 ranks: a head each.",
    },
    "two_ranks": {"zh": "每张卡一半的 KV 头。", "en": "Half of the KV heads on each rank."},
}


def fixed():
    return {
        "qwen3_32b_tp8": case(QWEN3_32B, 64, 2, 8, 40 << 30),
        "qwen3_32b_tp16": case(QWEN3_32B, 64, 2, 16, 40 << 30),
        "llama_fp8": case(LLAMA_1B, 1, 1, 1, 4 << 30),
        "no_gqa": case(OLD, 16, 2, 2, 24 << 30),
        "exactly_three_pages": case((1, 4, 2, 8), 4, 2, 1, 3 * 4 * 64),
        "a_byte_less": case((1, 4, 2, 8), 4, 2, 1, 3 * 4 * 64 - 1),
        "one_page": case((1, 4, 2, 8), 4, 2, 1, 4 * 64),
        "not_one_page": case((1, 4, 2, 8), 4, 2, 1, 100),
        "nothing": case((1, 4, 2, 8), 16, 2, 1, 0),
        "page_of_one": case((3, 4, 1, 8), 1, 4, 1, 10_000),
    }


def teach():
    return {
        "smallest": case((1, 1, 1, 1), 1, 1, 1, 10),
        "two_layers": case((2, 1, 1, 1), 1, 1, 1, 10),
        "queries": case((1, 2, 1, 1), 1, 1, 1, 10),
        "page": case((1, 1, 1, 1), 2, 1, 1, 11),
        "two_ranks": case((1, 2, 2, 1), 1, 1, 2, 10),
        "four_ranks": case((1, 4, 2, 1), 1, 1, 4, 10),
        "too_little": case((1, 1, 1, 1), 2, 1, 1, 1),
    }


def generate(rng):
    kv_heads, tp_size = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4, 8])
    model = (rng.integer(1, 40), 16, kv_heads, rng.choice([32, 64, 128]))
    return case(model, rng.choice([1, 4, 16]), rng.choice([1, 2, 4]), tp_size, rng.integer(1, 1 << 28))


FEATURES = {
    "parallel": {"zh": "不止一张卡", "en": "there is more than one rank"},
    "replicated": {"zh": "卡比 KV 头多", "en": "there are more ranks than KV heads"},
    "paged": {"zh": "页大小大于 1", "en": "the page size is greater than 1"},
}


def features(inputs):
    return {
        "parallel": inputs["tp_size"] > 1,
        "replicated": inputs["tp_size"] > inputs["config"]["num_kv_heads"],
        "paged": inputs["page_size"] > 1,
    }
