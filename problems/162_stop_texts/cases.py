"""Cases of problem 162: stop texts inside a piece, across pieces, begun and not finished, and two that overlap."""


def case(pieces, *stops):
    return {"pieces": list(pieces), "stops": list(stops)}


def public():
    return {
        "across": case(["Hi", " the", "re EN", "D more"], "END"),
        "false_start": case(["a E", "N", "glish", " word"], "END"),
        "no_stops": case(["a", "b"]),
    }


NOTES = {
    "across": {"zh": "END 分在两段里。", "en": "END is in two pieces."},
    "false_start": {"zh": "“EN”像是开头，后来不是。", "en": '"EN" looks like a beginning, and isn\'t.'},
    "no_stops": {"zh": "没有停止串：来什么发什么。", "en": "No stop texts: all is sent as it comes."},
}


def fixed():
    return {
        "nothing": case([], "x"),
        "inside_a_piece": case(["one STOP two", "three"], "STOP"),
        "at_the_start": case(["STOP two"], "STOP"),
        "one_character_stop": case(["ab", "c|d"], "|"),
        "in_three_pieces": case(["xS", "TO", "P."], "STOP"),
        "begun_at_the_end": case(["done ST"], "STOP"),
        "begun_in_pieces_at_the_end": case(["done", " S", "T"], "STOP"),
        "earliest_of_two": case(["x B y A z"], "A", "B"),
        "second_stop_across": case(["a #", "# b"], "END", "##"),
        "starts_anew_inside": case(["aab", "aabc"], "aabc"),
        "repeated_letter": case(["aa", "a", "ab"], "aab"),
        "longer_and_shorter": case(["xab", "cd"], "abcd", "b"),
        "text_after_the_stop": case(["q", "STOP", "r", "s"], "STOP"),
        "stop_ends_the_text": case(["q ST", "OP"], "STOP"),
        "newline": case(["line\n", "\nnext"], "\n\n"),
        "long_stop_short_text": case(["ab", "cd", "ef"], "zzzzzzzz"),
    }


def teach():
    return {
        "inside": case(["a.b"], "."),
        "across": case(["a-", "-b"], "--"),
        "begun": case(["a-"], "--"),
        "false_start": case(["a-", "b"], "--"),
        "earliest": case(["b a"], "a", "b"),
        "held_part": case(["x", "y", "z"], "qqq"),
        "after": case(["a.", "b"], "."),
        "anew": case(["aa", "ab"], "aab"),
    }


def generate(rng):
    stop = "".join(rng.choice("ab") for _ in range(rng.integer(1, 4)))
    more = ["".join(rng.choice("abc") for _ in range(rng.integer(2, 3)))] if rng.chance(1, 2) else []
    pieces = [
        "".join(rng.choice("aabbc") for _ in range(rng.integer(0, 3))) for _ in range(rng.integer(1, 6))
    ]
    return case(pieces, stop, *more)


FEATURES = {
    "comes": {"zh": "停止串出现了", "en": "a stop text comes"},
    "across": {"zh": "它跨了段", "en": "it comes across pieces"},
}


def features(inputs):
    pieces, stops = inputs["pieces"], inputs["stops"]
    return {
        "comes": any(s in "".join(pieces) for s in stops),
        "across": any(s in "".join(pieces) and not any(s in p for p in pieces) for s in stops),
    }
