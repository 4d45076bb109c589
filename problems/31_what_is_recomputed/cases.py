"""Cases of problem 31: pairs of lengths, none and one new token among them."""


def case(prompt_len, new_tokens):
    return {"prompt_len": prompt_len, "new_tokens": new_tokens}


def public():
    return {"three_and_three": case(3, 3), "long": case(2000, 500), "nothing": case(10, 0)}


NOTES = {
    "three_and_three": {"zh": "12 次对 5 次。", "en": "12 against 5."},
    "long": {"zh": "差了四百多倍。", "en": "More than four hundred times as many."},
    "nothing": {"zh": "什么也不生成。", "en": "Nothing is generated."},
}


def fixed():
    return {
        "one_and_one": case(1, 1),
        "one_new": case(100, 1),
        "two_new": case(7, 2),
        "one_token_prompt": case(1, 64),
        "odd": case(13, 17),
        "nothing_of_one": case(1, 0),
        "nothing_of_many": case(4096, 0),
        "short_prompt_long_answer": case(5, 3000),
        "long_prompt_short_answer": case(100_000, 3),
        "millions": case(2_000_000, 1_000_000),
    }


def teach():
    return {
        "one_and_one": case(1, 1),
        "two_and_one": case(2, 1),
        "one_and_two": case(1, 2),
        "two_and_two": case(2, 2),
        "two_and_three": case(2, 3),
        "nothing": case(2, 0),
    }


def generate(rng):
    return case(rng.integer(1, 5000), rng.choice([1, rng.integer(2, 50), rng.integer(50, 5000)]))


FEATURES = {
    "nothing": {"zh": "new_tokens 是 0", "en": "new_tokens is 0"},
    "one": {"zh": "new_tokens 是 1", "en": "new_tokens is 1"},
}


def features(inputs):
    return {"nothing": inputs["new_tokens"] == 0, "one": inputs["new_tokens"] == 1}
