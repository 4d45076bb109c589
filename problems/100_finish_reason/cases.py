"""Cases of problem 100: eos tokens first and later in the list, the last allowed token, ignore_eos beside stop tokens."""


def case(output, max_tokens=8, eos=(2,), stop=(), ignore_eos=False, prompt_len=5):
    return {
        "prompt_len": prompt_len,
        "output": list(output),
        "max_tokens": max_tokens,
        "eos_ids": list(eos),
        "stop_token_ids": list(stop),
        "ignore_eos": ignore_eos,
    }


def public():
    return {
        "goes_on": case([7, 9]),
        "second_eos": case([7, 9, 3], eos=(2, 3)),
        "length": case([7, 9, 4], max_tokens=3),
    }


NOTES = {
    "goes_on": {"zh": "没有遇到结束 token，也没到上限。", "en": "No end token, and room for more."},
    "second_eos": {"zh": "列表里第二个结束 token。", "en": "The second eos of the list."},
    "length": {"zh": "第 3 个 token，上限就是 3。", "en": "Token 3 of at most 3."},
}


def fixed():
    return {
        "first_eos": case([2]),
        "second_eos_of_three": case([5, 11], eos=(2, 11, 12)),
        "last_eos_of_three": case([5, 12], eos=(2, 11, 12)),
        "eos_is_last_allowed": case([5, 6, 2], max_tokens=3),
        "stop_token_is_last_allowed": case([5, 6, 9], max_tokens=3, stop=(9,)),
        "eos_ignored": case([5, 2], ignore_eos=True),
        "eos_ignored_earlier": case([2, 6], ignore_eos=True),
        "eos_ignored_at_the_end": case([5, 6, 2], max_tokens=3, ignore_eos=True),
        "stop_token_with_ignore_eos": case([5, 9], stop=(8, 9), ignore_eos=True),
        "long_prompt": case([5], max_tokens=8, prompt_len=100),
        "one_below": case([5, 6], max_tokens=3, prompt_len=1),
        "only_one": case([5], max_tokens=1, prompt_len=1),
        "eos_is_stop_token_too": case([4, 2], stop=(2,), ignore_eos=True),
    }


def teach():
    return {
        "long_prompt": case([5], max_tokens=2, prompt_len=2),
        "length": case([5], max_tokens=1, prompt_len=1),
        "second_eos": case([3], eos=(2, 3)),
        "eos_last": case([2], max_tokens=1, prompt_len=1),
        "ignored_stop": case([9], stop=(9,), ignore_eos=True),
        "ignored_earlier": case([2, 6], ignore_eos=True),
        "ignored": case([2], ignore_eos=True),
    }


def generate(rng):
    few = list(range(2, 9))
    count = rng.integer(1, 6)
    return case(
        [rng.choice(few) for _ in range(count)],
        max_tokens=count + rng.choice([0, 0, 1, 3]),
        eos=rng.sample(few, rng.integer(0, 3)),
        stop=rng.sample(few, rng.integer(0, 2)),
        ignore_eos=rng.chance(1, 3),
        prompt_len=rng.integer(1, 50),
    )


FEATURES = {
    "ignore": {"zh": "设了 ignore_eos", "en": "ignore_eos is set"},
    "full": {"zh": "正好生成到上限", "en": "the limit is reached with this token"},
    "later_eos": {
        "zh": "刚来的是列表里后面的结束 token",
        "en": "the token is an eos, but not the first of the list",
    },
}


def features(inputs):
    return {
        "ignore": inputs["ignore_eos"],
        "full": len(inputs["output"]) >= inputs["max_tokens"],
        "later_eos": inputs["output"][-1] in inputs["eos_ids"][1:],
    }
