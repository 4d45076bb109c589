"""Cases of problem 120: matches that end at a page border, one off it, inside a page, or with the prompt."""


def case(cached, prompt, page_size=4):
    return {"cached": [list(c) for c in cached], "prompt": list(prompt), "page_size": page_size}


def public():
    return {
        "part_of_a_page": case([[7, 8, 9, 4, 1, 2, 3, 5]], [7, 8, 9, 4, 1, 2, 6, 6]),
        "whole_prompt": case([[7, 8, 9, 4, 1, 2, 3, 5]], [7, 8, 9, 4, 1, 2, 3, 5]),
        "longest": case([[1, 1, 2, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6]], [1, 2, 3, 4, 5, 6, 7], 2),
    }


NOTES = {
    "part_of_a_page": {
        "zh": "6 个 token 相同，只有第一页是完整的。",
        "en": "6 tokens agree, but only the first page is whole.",
    },
    "whole_prompt": {
        "zh": "整个 prompt 都在缓存里，最后一个 token 还是要算，于是最后一页整页重算。",
        "en": "All of the prompt is cached. Its last token is computed all the same, and so all of the last page.",
    },
    "longest": {"zh": "命中最长的那一条。", "en": "The longest of them counts."},
}


def fixed():
    return {
        "nothing_cached": case([], [1, 2, 3, 4, 5]),
        "first_token_differs": case([[9, 2, 3, 4]], [1, 2, 3, 4, 5]),
        "one_token": case([[5, 6]], [5], 1),
        "one_token_past_the_page": case([[1, 2, 3, 4]], [1, 2, 3, 4, 5]),
        "exactly_the_page": case([[1, 2, 3, 4]], [1, 2, 3, 4]),
        "one_before_the_page": case([[1, 2, 3, 4]], [1, 2, 3]),
        "whole_prompt_page_one": case([[3, 1, 4, 1]], [3, 1, 4, 1], 1),
        "whole_prompt_two_pages": case([[3, 1, 4, 1, 5, 9]], [3, 1, 4, 1], 2),
        "agrees_again_later": case([[1, 2, 9, 4, 5, 6, 7, 8]], [1, 2, 3, 4, 5, 6, 7, 8, 9], 2),
        "second_is_longest": case([[1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        "first_is_longest": case(
            [[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4], [2, 2, 2, 2]], [1, 2, 3, 4, 5, 6, 7, 8, 9]
        ),
        "ends_inside_a_page": case([[1, 2, 3, 4, 5, 6, 7, 8]], [1, 2, 3, 4, 5, 6, 7]),
        "cached_is_longer": case([[6, 6, 7, 7, 8, 8, 9, 9, 1]], [6, 6, 7, 7, 8, 8], 1),
        "inside_the_prompt": case([[5, 6, 7, 8]], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    }


def teach():
    return {
        "hit": case([[1, 2]], [1, 2, 3], 2),
        "all": case([[1]], [1], 1),
        "all_two": case([[1, 2]], [1, 2], 2),
        "part": case([[1, 2]], [1, 3, 4], 2),
        "second": case([[2, 2], [1, 2]], [1, 2, 3], 2),
        "later": case([[1, 5, 3, 4]], [1, 2, 3, 4, 5], 1),
        "inside": case([[3, 4]], [1, 2, 3, 4, 5], 2),
        "longer_behind": case([[1, 2], [1, 2, 3, 4]], [1, 2, 3, 4, 5], 2),
    }


def generate(rng):
    page_size = rng.choice([1, 2, 4])
    prompt = [rng.integer(1, 3) for _ in range(rng.integer(1, 14))]
    cached = []
    for _ in range(rng.integer(1, 4)):
        keep = rng.integer(0, len(prompt))
        sequence = prompt[:keep] + [rng.integer(1, 3) for _ in range(rng.integer(1, 8))]
        sequence = sequence[: len(sequence) // page_size * page_size]
        if sequence:
            cached.append(sequence)
    return case(cached, prompt, page_size)


FEATURES = {
    "all": {"zh": "整个 prompt 都在缓存里", "en": "all of the prompt is cached"},
    "several": {"zh": "缓存里不止一条", "en": "more than one sequence is cached"},
}


def features(inputs):
    prompt = inputs["prompt"]
    return {
        "all": any(c[: len(prompt)] == prompt for c in inputs["cached"]),
        "several": len(inputs["cached"]) > 1,
    }
