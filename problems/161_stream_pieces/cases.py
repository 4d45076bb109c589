"""Cases of problem 161: answers as the bytes of each of their tokens. Decoding strips one space at the beginning, as some
tokenizers do."""

VOCABULARY = [
    list(piece)
    for piece in (
        *(b" hello", b" world", b"!", b" a", b"b", b" "),  # 0 to 5
        "好".encode(),
        *(b"\xe6\xb1", b"\x89", b"\xe6", b"\xb1\x89"),  # 7 to 10: parts of one Han character
        *(b"\xf0\x9f", b"\x99\x82", b"\xf0", b"\x9f", b"\x99", b"\x82"),  # 11 to 16: parts of an emoji
        b"\xff",  # 17: no character, ever
        "\ufffd".encode(),  # 18
        b"\x89 ok",
        b"",  # 20: a special token, without text
    )
]


def case(*ids):
    """`ids`: which pieces of VOCABULARY the answer is made of."""
    return {"tokens": [VOCABULARY[i] for i in ids]}


def public():
    return {"two_words": case(0, 1, 2), "split_character": case(6, 7, 8, 2), "ends_inside": case(0, 11)}


NOTES = {
    "two_words": {"zh": "开头的空格没有，中间的有。", "en": "No space at the beginning, but one in between."},
    "split_character": {"zh": "“汉”分在两个 token 里。", "en": "A Han character in two tokens."},
    "ends_inside": {
        "zh": "回答停在半个字符上：末尾照样发出。",
        "en": "The answer stops inside a character: the rest is sent all the same.",
    },
}


def fixed():
    return {
        "nothing": case(),
        "one": case(3),
        "emoji_in_two": case(3, 11, 12, 4),
        "emoji_in_four": case(13, 14, 15, 16, 2),
        "character_and_text": case(6, 7, 19, 1),
        "broken_byte": case(0, 17, 1, 2),
        "broken_byte_at_the_end": case(0, 17),
        "two_broken_bytes": case(17, 17, 4),
        "real_replacement": case(3, 18, 4),
        "broken_then_character": case(17, 9, 10, 4),
        "only_half": case(9),
        "half_then_word": case(7, 1, 2),
        "space_first": case(5, 5, 4),
        "special_tokens": case(20, 0, 20, 1, 20),
        "same_word_again": case(3, 3, 3),
    }


def teach():
    return {
        "one": case(2),
        "two": case(2, 4),
        "space": case(3, 3),
        "split": case(7, 8),
        "ends_inside": case(9),
        "broken": case(17, 4),
        "two_broken": case(17, 17),
        "half_then_word": case(7, 2),
    }


def generate(rng):
    ids = []
    for _ in range(rng.integer(1, 5)):
        ids += rng.choice(
            [[0], [1], [2], [3], [4], [6], [7, 8], [9, 10], [11, 12], [13, 14, 15, 16], [17], [20], [7]]
        )
    return case(*ids)


FEATURES = {
    "split": {"zh": "有字符分在几个 token 里", "en": "a character is spread over several tokens"},
    "broken": {"zh": "解码出来有 U+FFFD", "en": "the text has a U+FFFD"},
}


def features(inputs):
    tokens = [bytes(token) for token in inputs["tokens"]]
    text = b"".join(tokens).decode(errors="replace")
    begun = [token[:1] in (b"\xe6", b"\xf0") for token in tokens[:-1]]
    return {"split": any(begun), "broken": "\ufffd" in text}
