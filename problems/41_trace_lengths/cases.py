"""Cases of problem 41: with and without a cached prefix, one output, and a prefill that computes a single token."""


def case(prompt_len, cached_len, output_len):
    return {"prompt_len": prompt_len, "cached_len": cached_len, "output_len": output_len}


def public():
    return {"prefix_hit": case(5, 3, 3), "one_output": case(4, 0, 1), "no_hit": case(3, 0, 2)}


NOTES = {
    "prefix_hit": {
        "zh": "前 3 个 token 命中，prefill 只算 2 个。",
        "en": "3 tokens are cached: the prefill computes 2.",
    },
    "one_output": {"zh": "只生成一个：没有 decode。", "en": "One token only: there is no decode."},
    "no_hit": {"zh": "没有命中。", "en": "No hit."},
}


def fixed():
    return {
        "one_token_prompt": case(1, 0, 4),
        "all_but_one_cached": case(8, 7, 4),
        "all_but_one_cached_one_output": case(8, 7, 1),
        "long_prefill": case(100, 0, 3),
        "long_hit": case(100, 64, 5),
        "many_outputs": case(3, 1, 12),
        "two_outputs": case(6, 2, 2),
        "one_and_one": case(1, 0, 1),
        "two_and_one": case(2, 1, 3),
    }


def teach():
    return {
        "one_and_one": case(1, 0, 1),
        "two": case(2, 0, 1),
        "hit": case(3, 1, 1),
        "two_outputs": case(2, 0, 2),
        "hit_two": case(3, 1, 2),
        "one_to_compute": case(2, 1, 2),
        "three_outputs": case(1, 0, 3),
    }


def generate(rng):
    prompt_len = rng.integer(2, 60)
    return case(prompt_len, rng.choice([0, prompt_len - 1, rng.below(prompt_len)]), rng.integer(1, 9))


FEATURES = {
    "cached": {"zh": "开始时有命中", "en": "a prefix is cached"},
    "several": {"zh": "不止生成一个 token", "en": "more than one token is generated"},
    "one_to_compute": {"zh": "prefill 只算一个 token", "en": "the prefill computes one token"},
}


def features(inputs):
    return {
        "cached": inputs["cached_len"] > 0,
        "several": inputs["output_len"] > 1,
        "one_to_compute": inputs["cached_len"] + 1 == inputs["prompt_len"],
    }
