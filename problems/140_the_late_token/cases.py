"""Cases of problem 140: ends by length and by eos at the first, the last and the one before the last allowed token."""


def case(tokens, max_tokens, eos=(2,)):
    """`tokens` go on with 90, 91, ... so that there are enough for a step too many."""
    more = [90 + i for i in range(max(0, max_tokens + 2 - len(tokens)))]
    return {"tokens": [*tokens, *more], "max_tokens": max_tokens, "eos_ids": list(eos)}


def public():
    return {
        "eos": case([7, 8, 2, 5], 6),
        "length": case([7, 8, 9, 5], 3),
        "eos_is_last": case([7, 8, 2, 5], 3),
    }


NOTES = {
    "eos": {
        "zh": "看到 2 时，第 3 步已经发出去了；那一步的 5 丢掉。",
        "en": "When 2 is seen, step 3 has been launched; its 5 is dropped.",
    },
    "length": {
        "zh": "长度是数得出来的，没有多余的一步。",
        "en": "The length can be counted: there is no step too many.",
    },
    "eos_is_last": {
        "zh": "最后一个名额上是结束 token：也没有多余的一步。",
        "en": "An end token at the last place: no step too many either.",
    },
}


def fixed():
    return {
        "one_token": case([7], 1),
        "one_token_eos": case([2], 1),
        "eos_first": case([2, 6, 7], 5),
        "eos_second": case([6, 2, 7], 5),
        "eos_one_before_last": case([6, 7, 2, 9], 4),
        "eos_twice": case([6, 2, 2, 9], 5),
        "eos_after_the_end": case([6, 7, 8, 2], 3),
        "two_kinds_of_eos": case([6, 3, 2, 9], 6, eos=(2, 3)),
        "no_eos": case([6, 2, 2, 9], 4, eos=()),
        "long": case([6, 7, 8, 9, 10, 11, 12], 7),
        "long_eos": case([6, 7, 8, 9, 10, 2, 12, 13], 12),
        "two_tokens": case([6, 7, 8], 2),
    }


def teach():
    return {
        "length_one": case([7], 1),
        "length_two": case([7, 8], 2),
        "eos_first": case([2, 5], 3),
        "eos_second": case([7, 2, 5], 4),
        "eos_last": case([7, 2, 5], 2),
        "eos_twice": case([2, 2], 3),
    }


def generate(rng):
    max_tokens = rng.integer(1, 9)
    tokens = [rng.choice([2, 3, 5, 6, 7, 8, 9, 10]) for _ in range(max_tokens + 2)]
    return case(tokens, max_tokens, rng.choice([(2,), (2, 3), ()]))


FEATURES = {
    "eos": {"zh": "遇到结束 token 之后还有名额", "en": "an end token comes before the last allowed place"},
    "one": {"zh": "只要一个 token", "en": "a single token is asked for"},
}


def features(inputs):
    before_last = inputs["tokens"][: inputs["max_tokens"] - 1]
    return {"eos": any(t in inputs["eos_ids"] for t in before_last), "one": inputs["max_tokens"] == 1}
