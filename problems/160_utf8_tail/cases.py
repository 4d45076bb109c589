"""Cases of problem 160: characters of one to four bytes cut at each place, and bytes that can never be one."""


def case(data):
    return {"data": list(data)}


HAN = "汉".encode()
FACE = "🙂".encode()


def public():
    return {
        "half_a_character": case("好".encode() + HAN[:2]),
        "whole": case("é好🙂".encode()),
        "never_a_character": case([0x61, 0xFF]),
    }


NOTES = {
    "half_a_character": {
        "zh": "“汉”的三个字节来了两个。",
        "en": "Two of the three bytes of a character have come.",
    },
    "whole": {"zh": "都到齐了：没有要留的。", "en": "All is there: nothing to keep."},
    "never_a_character": {
        "zh": "255 在 UTF-8 里不会出现，等也没用。",
        "en": "255 is in no UTF-8 text; waiting won't help.",
    },
}


def fixed():
    return {
        "empty": case([]),
        "ascii": case(b"token"),
        "one_of_two": case("é".encode()[:1]),
        "one_of_three": case(HAN[:1]),
        "two_of_three": case(HAN[:2]),
        "one_of_four": case(b"ok" + FACE[:1]),
        "two_of_four": case(b"ok" + FACE[:2]),
        "three_of_four": case(HAN + FACE[:3]),
        "cut_then_ascii": case([*HAN[:2], 0x41]),
        "cut_then_whole": case([*FACE[:3], *HAN]),
        "bad_then_half": case([0xFF, *HAN[:1]]),
        "lone_continuation": case([0x80, 0x61]),
        "lone_continuation_at_the_end": case([0x61, 0x80]),
        "bad_second_byte": case([0xE0, 0x80]),
        "real_replacement": case("\ufffd".encode()),
        "ends_in_two_byte": case("né".encode()),
    }


def teach():
    return {
        "whole": case("é".encode()),
        "half": case("é".encode()[:1]),
        "half_after": case(b"a" + "é".encode()[:1]),
        "bad": case([0xFF]),
        "cut_then_ascii": case([0xC3, 0x41]),
        "two_of_four": case(FACE[:2]),
        "ascii": case(b"ab"),
        "replacement": case("\ufffd".encode()),
    }


def generate(rng):
    text = "".join(rng.choice(["a", "é", "汉", "🙂", " ", "字"]) for _ in range(rng.integer(1, 6))).encode()
    data = list(text[: len(text) - rng.choice([0, 0, 1, 2, 3])])
    if data and rng.chance(1, 4):
        data[rng.below(len(data))] = rng.choice([0x80, 0xFF, 0xE0])
    return case(data)


FEATURES = {
    "cut": {"zh": "末尾的字符没有到齐", "en": "the last character is not complete"},
    "bad": {"zh": "有的字节不可能是字符", "en": "some bytes can be no character"},
}


def features(inputs):
    data = bytes(inputs["data"])
    try:
        data.decode()
        return {"cut": False, "bad": False}
    except UnicodeDecodeError as error:
        cut = error.end == len(data) and error.reason == "unexpected end of data"
        return {"cut": cut, "bad": not cut}
