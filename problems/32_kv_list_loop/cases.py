"""Cases of problem 32: prompts and numbers of new tokens; `salt` makes another model of the formula in driver.py."""


def case(prompt, count, salt):
    return {"prompt": list(prompt), "max_new_tokens": count, "salt": salt}


def public():
    return {"three_tokens": case([5, 2], 3, 0), "one_token": case([4, 4, 1], 1, 2)}


NOTES = {
    "three_tokens": {"zh": "一次 prefill，两次 decode。", "en": "A prefill and two decodes."},
    "one_token": {"zh": "只要一个：只有 prefill。", "en": "One is asked for: only the prefill."},
}


def fixed():
    return {
        "one_token_prompt": case([7], 4, 1),
        "long_prompt": case([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 5, 4),
        "two": case([2, 8], 2, 6),
        "nothing": case([9, 9, 1], 0, 8),
        "nothing_of_one": case([4], 0, 3),
        "many": case([8, 0, 8], 14, 12),
        "same_token": case([6, 6, 6, 6], 6, 20),
        "one_and_one": case([11], 1, 33),
        "longer": case([1, 2, 3, 4, 5, 6], 8, 47),
    }


def teach():
    return {
        "one": case([1], 1, 0),
        "two_prompt": case([1, 2], 1, 0),
        "two_new": case([1], 2, 1),
        "two_and_two": case([3, 2], 2, 1),
        "three_new": case([2], 3, 2),
        "none": case([2], 0, 1),
    }


def generate(rng):
    return case([rng.below(VOCAB) for _ in range(rng.integer(1, 8))], rng.integer(1, 10), rng.below(1000))


VOCAB = 13
FEATURES = {
    "decodes": {"zh": "不止生成一个 token", "en": "more than one token is generated"},
    "long_prompt": {"zh": "prompt 不止一个 token", "en": "the prompt has more than one token"},
}


def features(inputs):
    return {"decodes": inputs["max_new_tokens"] > 1, "long_prompt": len(inputs["prompt"]) > 1}
