"""Cases of problem 180: pieces with every kind of line break, also those that are none for SSE."""


def case(*pieces, failed=False):
    return {"pieces": list(pieces), "failed": failed}


def public():
    return {
        "two_pieces": case("Hel", "lo"),
        "line_break": case("one\ntwo"),
        "broken_off": case("so far", failed=True),
    }


NOTES = {
    "two_pieces": {"zh": "两段文字，然后是 [DONE]。", "en": "Two pieces, then [DONE]."},
    "line_break": {"zh": "一个事件，两个 data 行。", "en": "One event with two data lines."},
    "broken_off": {"zh": "中途出错：没有 [DONE]。", "en": "It broke off: no [DONE]."},
}


def fixed():
    return {
        "nothing": case(),
        "nothing_and_failed": case(failed=True),
        "empty_piece": case("a", "", "b"),
        "ends_in_break": case("a line\n", "next"),
        "only_a_break": case("\n"),
        "blank_line_inside": case("par one\n\npar two"),
        "carriage_returns": case("a\r\nb\rc"),
        "not_line_breaks": case("x\u2028y\x0bz\x85w"),
        "done_as_text": case("[DONE]", failed=True),
        "json": case('{"text": "a\\nb"}', '{"text": ""}'),
        "chinese": case("你好\n", "世界", failed=True),
    }


def teach():
    return {
        "one": case("a"),
        "failed": case("a", failed=True),
        "break": case("a\nb"),
        "ends_in_break": case("a\n"),
        "empty": case(""),
        "carriage_return": case("a\rb"),
        "separator": case("a\u2028b"),
    }


def generate(rng):
    parts = ["a", "bc", "\n", "\r\n", "\r", " ", "", "字", "\u2028", "\x0c"]
    pieces = ["".join(rng.choice(parts) for _ in range(rng.integer(0, 5))) for _ in range(rng.integer(0, 5))]
    return case(*pieces, failed=rng.chance(1, 3))


FEATURES = {
    "break": {"zh": "有一段文字里有换行", "en": "a piece holds a line break"},
    "failed": {"zh": "中途出错", "en": "it broke off"},
    "empty": {"zh": "有空的一段", "en": "a piece is empty"},
}


def features(inputs):
    return {
        "break": any(c in piece for piece in inputs["pieces"] for c in "\r\n"),
        "failed": inputs["failed"],
        "empty": "" in inputs["pieces"],
    }
