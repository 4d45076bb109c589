"""Cases of problem 130: prompts that end at the budget's border, one token off it, span several batches, or are cached."""


def case(prompts, budget):
    return {"prompts": [list(p) if isinstance(p, tuple) else [p, 0] for p in prompts], "budget": budget}


def public():
    return {
        "cut": case([6, 10, 3], 8),
        "cached": case([(20, 16), 9], 8),
        "exact": case([8, 8], 8),
    }


NOTES = {
    "cut": {
        "zh": "请求 1 在第一批只分到 2 个；第三个请求接在它的末块后面。",
        "en": "Request 1 gets 2 tokens of the first batch; the third comes behind its last chunk.",
    },
    "cached": {"zh": "请求 0 只有 4 个要算。", "en": "Request 0 has 4 tokens to compute."},
    "exact": {"zh": "正好用完，没有空块。", "en": "Used up exactly: there is no empty chunk."},
}


def fixed():
    return {
        "nobody": case([], 8),
        "one_short": case([3], 8),
        "one_long": case([20], 8),
        "border_plus_one": case([9], 8),
        "border_minus_one": case([7, 2], 8),
        "three_batches": case([24], 8),
        "long_then_short": case([17, 1, 1, 1], 8),
        "short_behind_long": case([12, 2, 3], 8),
        "many_short": case([3, 3, 3, 3, 3], 7),
        "budget_one": case([2, 1], 1),
        "all_but_one_cached": case([(33, 32), (9, 8), 4], 4),
        "cached_and_cut": case([(30, 10), (12, 4)], 16),
        "large_budget": case([5, 6, 7], 100),
        "cut_twice": case([5, 13, 5], 6),
    }


def teach():
    return {
        "one": case([1], 2),
        "cut": case([3], 2),
        "two": case([1, 1], 2),
        "two_cut": case([1, 2], 2),
        "behind_last_chunk": case([3, 1], 2),
        "cached": case([(3, 2)], 2),
        "exact": case([2, 2], 2),
        "order": case([2, 1], 2),
        "cached_and_next": case([(2, 1), 1], 2),
    }


def generate(rng):
    budget = rng.choice([4, 8, 16])
    prompts = []
    for _ in range(rng.integer(1, 6)):
        length = rng.integer(1, 40)
        prompts.append((length, rng.choice([0, 0, rng.below(length)])))
    return case(prompts, budget)


FEATURES = {
    "cached": {"zh": "有请求命中了前缀", "en": "a request has a cached prefix"},
    "cut": {"zh": "有 prompt 超过一批的预算", "en": "a prompt is longer than the budget"},
    "several": {"zh": "不止一个请求", "en": "there is more than one request"},
}


def features(inputs):
    return {
        "cached": any(c for _, c in inputs["prompts"]),
        "cut": any(n - c > inputs["budget"] for n, c in inputs["prompts"]),
        "several": len(inputs["prompts"]) > 1,
    }
