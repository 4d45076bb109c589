"""Cases of problem 181: the pieces of n answers, interleaved."""

TEXTS = ["a", "bc ", "字", "", "d\n"]


def case(prompt_tokens, n, *pieces):
    return {"prompt_tokens": prompt_tokens, "n": n, "pieces": [list(p) for p in pieces]}


def public():
    return {
        "two_interleaved": case(
            5, 2, (1, "Good", 1, None), (0, "Hi", 1, None), (1, " day", 1, "stop"), (0, "!", 2, "length")
        ),
        "one_answer": case(3, 1, (0, "a", 1, None), (0, "", 1, None), (0, "字", 1, "stop")),
    }


NOTES = {
    "two_interleaved": {
        "zh": "答案 1 先到也先说完；一共生成 5 个 token。",
        "en": "Answer 1 comes first and ends first; 5 tokens in all.",
    },
    "one_answer": {
        "zh": "第二段没有字，却有一个 token。",
        "en": "The second piece has no text, but a token.",
    },
}


def fixed():
    return {
        "three_tokens_a_piece": case(7, 1, (0, "字", 3, None), (0, "母", 3, "length")),
        "last_piece_empty": case(4, 1, (0, "yes", 2, None), (0, "", 1, "stop")),
        "reverse_order": case(9, 3, (2, "c", 1, "stop"), (1, "b", 2, "length"), (0, "a", 3, "stop")),
        "one_goes_on": case(
            2, 2, (0, "x", 1, "stop"), (1, "y", 1, None), (1, "z", 1, None), (1, "", 1, "length")
        ),
        "no_token": case(6, 2, (1, "", 0, "stop"), (0, "", 0, "length")),
        "long_prompt": case(4000, 2, (0, "a", 1, None), (1, "b", 1, "stop"), (0, "b", 1, "length")),
        "four": case(1, 4, *[(i, str(i), i + 1, "stop") for i in (3, 0, 2, 1)]),
        "stop_cut_text": case(8, 1, (0, "ab", 5, None), (0, "", 2, "stop")),
        "same_text": case(5, 2, (0, "s", 1, "stop"), (1, "s", 1, "stop")),
    }


def teach():
    return {
        "one": case(1, 1, (0, "a", 1, "stop")),
        "two_tokens": case(1, 1, (0, "a", 2, "stop")),
        "two_pieces": case(1, 1, (0, "a", 1, None), (0, "b", 1, "length")),
        "empty_end": case(2, 1, (0, "a", 1, None), (0, "", 1, "stop")),
        "swapped": case(2, 2, (1, "b", 1, "stop"), (0, "a", 1, "length")),
    }


def generate(rng):
    n = rng.integer(1, 4)
    left = {i: rng.integer(1, 4) for i in range(n)}
    pieces = []
    while left:
        index = rng.choice(sorted(left))
        left[index] -= 1
        reason = None
        if not left[index]:
            del left[index]
            reason = rng.choice(["stop", "length"])
        pieces.append((index, rng.choice(TEXTS), rng.integer(0, 3), reason))
    return case(rng.integer(1, 50), n, *pieces)


FEATURES = {
    "several": {"zh": "n 大于 1", "en": "n is above 1"},
    "tokens": {"zh": "有一段不是正好一个 token", "en": "a piece has not exactly one token"},
}


def features(inputs):
    return {"several": inputs["n"] > 1, "tokens": any(p[2] != 1 for p in inputs["pieces"])}
