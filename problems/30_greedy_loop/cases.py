"""Cases of problem 30. `salt` makes another model of the formula in driver.py; the eos tokens of a case are chosen from
what its model says, which `says` works out."""

VOCAB = 13


def says(prompt, count, salt):
    """The `count` tokens that the model goes on with."""
    state, tokens = salt, []
    for token in prompt:
        state = (state * 37 + token * 11 + 5) % 1009
    for _ in range(count):
        row = [(state * (column + 3) + column * column) % 101 for column in range(VOCAB)]
        tokens.append(row.index(max(row)))
        state = (state * 37 + tokens[-1] * 11 + 5) % 1009
    return tokens


def case(prompt, count, salt, eos_at=None, more_eos=()):
    """`eos_at`: the token generated there is an eos; its first appearance ends the text."""
    eos = [] if eos_at is None else [says(prompt, eos_at + 1, salt)[eos_at]]
    return {"prompt": list(prompt), "max_new_tokens": count, "eos_ids": [*more_eos, *eos], "salt": salt}


def public():
    return {
        "three_tokens": case([5, 2], 3, 0),
        "ends_at_eos": case([1, 4, 4], 8, 3, eos_at=2),
        "nothing_asked": case([3], 0, 1),
    }


NOTES = {
    "three_tokens": {"zh": "三次调用，一次比一次长。", "en": "Three calls, each longer than the last."},
    "ends_at_eos": {
        "zh": "遇到结束 token 就停，它也在结果里。",
        "en": "Stops at the eos token, which is part of the result.",
    },
    "nothing_asked": {"zh": "一个都不要：不调用模型。", "en": "None are asked for: the model is not called."},
}


def fixed():
    return {
        "one_token": case([7], 1, 2),
        "long_prompt": case([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 5, 4),
        "eos_is_first": case([6, 2], 6, 5, eos_at=0),
        "eos_is_last_allowed": case([2, 8], 4, 6, eos_at=3),
        "second_of_two_eos": case([9, 9, 1], 7, 13, eos_at=2, more_eos=(12,)),
        "eos_in_prompt": {"prompt": [4, 12, 4], "max_new_tokens": 4, "eos_ids": [4, 12], "salt": 21},
        "no_eos": case([1, 2, 3, 4], 9, 9),
        "zero_tokens": case([5, 5], 0, 10),
        "zero_tokens_with_eos": case([4, 1], 0, 11, more_eos=(4,)),
        "sixteen": case([8, 0, 8], 16, 12),
    }


def teach():
    return {
        "one": case([1], 1, 0),
        "two": case([1], 2, 0),
        "two_of_two": case([2, 1], 2, 1),
        "eos_at_once": case([3], 2, 1, eos_at=0),
        "eos_second": case([2], 3, 2, eos_at=1),
        "none": case([2], 0, 1),
        "two_eos": case([3, 2], 3, 5, eos_at=1, more_eos=(11,)),
    }


def generate(rng):
    prompt = [rng.below(VOCAB) for _ in range(rng.integer(1, 8))]
    count = rng.integer(1, 10)
    eos_at = rng.integer(0, count - 1) if rng.chance(1, 2) else None
    return case(prompt, count, rng.below(1000), eos_at)


FEATURES = {
    "eos": {"zh": "会遇到结束 token", "en": "an eos token comes up"},
    "several": {"zh": "不止生成一个 token", "en": "more than one token is generated"},
}


def features(inputs):
    tokens = says(inputs["prompt"], inputs["max_new_tokens"], inputs["salt"])
    return {"eos": any(t in inputs["eos_ids"] for t in tokens), "several": len(tokens) > 1}
