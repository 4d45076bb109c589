"""Cases of problem 242: traces with shared prefixes, turns of a conversation, repeats and near misses."""

from judge.core.rng import Rng


def case(page_size, *prompts):
    return {"prompts": [list(p) for p in prompts], "page_size": page_size}


def drawn(rng, page_size, count):
    """Prompts that go on from a prefix of an earlier one, or begin anew."""
    prompts = []
    for _ in range(count):
        prompt = []
        if prompts and rng.chance(3, 4):
            earlier = rng.choice(prompts)
            prompt = earlier[: rng.integer(1, len(earlier))]
        prompt = prompt + [rng.below(3) for _ in range(rng.integer(0, 2 * page_size))]
        prompts.append(prompt or [rng.below(3)])
    return case(page_size, *prompts)


def public():
    return {
        "shared_system_prompt": case(2, [1, 2, 3, 4, 5], [1, 2, 3, 4, 9, 9], [1, 2, 7]),
        "same_again": case(4, [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8]),
    }


NOTES = {
    "shared_system_prompt": {
        "zh": "命中 0、4、2，共 14 个 token。",
        "en": "Hits of 0, 4 and 2, of 14 tokens.",
    },
    "same_again": {
        "zh": "一模一样也要算一个 token：只命中一页。",
        "en": "The same again still computes a token: one page is hit.",
    },
}


def fixed():
    rng = Rng(b"fixed 242")
    return {
        "page_size_one": case(1, [4, 5, 6], [4, 5, 6], [4, 5, 7, 8]),
        "conversation": case(2, [1, 1, 2], [1, 1, 2, 3, 3], [1, 1, 2, 3, 3, 4, 4, 4]),
        "earlier_not_last": case(2, [1, 2, 3, 4, 5], [9, 9, 9], [1, 2, 3, 4, 6]),
        "middle_is_no_prefix": case(2, [1, 2, 3, 4, 5], [7, 7, 3, 4, 5], [3, 4, 5]),
        "shorter_than_a_page": case(4, [1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5]),
        "one_page_exactly": case(4, [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5]),
        "partial_page": case(
            4, [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 9, 9], [1, 2, 3, 4, 5, 6, 7, 8, 9]
        ),
        "repeats_in_itself": case(2, [5, 5, 5, 5, 5, 5], [5, 5, 5, 5]),
        "first_token_differs": case(1, [1, 2, 3, 4], [2, 2, 3, 4], [1, 2]),
        "uneven_lengths": case(2, [1, 2, 3], [1, 2, 3], list(range(20))),
        "nothing": case(4),
        "drawn": drawn(rng, 2, 8),
        "drawn_four": drawn(rng, 4, 8),
    }


def teach():
    return {
        "first": case(1, [1, 2]),
        "again": case(1, [1, 2], [1, 2]),
        "one_token": case(1, [1], [1]),
        "page_of_two": case(2, [1, 2, 3], [1, 2, 3]),
        "full_page": case(2, [1, 2], [1, 2]),
        "half_page": case(2, [1, 2, 3, 4, 5], [1, 2, 3, 9, 9]),
        "in_between": case(1, [1, 2], [3, 4], [1, 5]),
        "no_prefix": case(1, [1, 2], [3, 2]),
        "itself": case(1, [7, 7, 7]),
        "two_lengths": case(1, [1], [1, 2]),
        "starts_elsewhere": case(1, [1, 2], [2, 3]),
    }


def generate(rng):
    return drawn(rng, rng.choice([1, 2, 4]), rng.integer(2, 7))


FEATURES = {
    "paged": {"zh": "页大小大于 1", "en": "the page size is above 1"},
    "repeat": {"zh": "有一模一样的 prompt", "en": "a prompt comes again"},
}


def features(inputs):
    prompts = [tuple(p) for p in inputs["prompts"]]
    return {"paged": inputs["page_size"] > 1, "repeat": len(set(prompts)) < len(prompts)}
