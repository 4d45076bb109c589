"""Cases of problem 152: frames cut in the header and in the body, several in one chunk, empty ones, ones too long."""


def frame(*body):
    return [len(body) // 256, len(body) % 256, *body]


def case(*chunks, limit=300):
    return {"chunks": [list(c) for c in chunks], "limit": limit}


LONG = frame(*(i % 7 for i in range(258)))


def public():
    return {
        "two_in_one": case([*frame(5, 6), *frame(7)]),
        "cut": case([0], [3, 1], [2, 3, 0]),
        "too_long": case([*frame(9), 0, 5, 1], limit=4),
    }


NOTES = {
    "two_in_one": {"zh": "一次来了两帧。", "en": "Two frames come at once."},
    "cut": {
        "zh": "长度和内容都被切开了；最后剩下半个长度。",
        "en": "Both length and body are cut; half a length is left.",
    },
    "too_long": {
        "zh": "第二帧说有 5 个字节：不等它来就拒绝。",
        "en": "The second frame says 5 bytes: refused before they have come.",
    },
}


def fixed():
    return {
        "nothing": case(),
        "empty_chunks": case([], frame(4), []),
        "empty_frame": case([*frame(), *frame(8), *frame()]),
        "header_cut": case(frame(1, 2, 3)[:1], [*frame(1, 2, 3)[1:], *frame(4)]),
        "body_cut_in_three": case([0, 4, 9], [8, 7], [6]),
        "not_complete": case([*frame(3, 3), 0, 9, 1, 2]),
        "over_256": case(LONG[:100], LONG[100:], frame(1)),
        "exactly_the_limit": case(frame(1, 2, 3, 4), limit=4),
        "one_over": case([*frame(1, 2), *frame(1, 2, 3, 4, 5), *frame(6)], limit=4),
        "over_only_a_header": case(frame(7), [1, 0], limit=255),
        "huge_header": case([255, 255, 1], limit=1000),
        "byte_by_byte": case(*([b] for b in [*frame(2, 1), *frame(3)])),
    }


def teach():
    return {
        "one": case(frame(5)),
        "two_in_one": case([*frame(5), *frame(6)]),
        "cut": case([0, 1], [5]),
        "header_cut": case([0], [1, 5]),
        "limit": case(frame(5), limit=1),
        "too_long": case([0, 2], limit=1),
        "empty": case(frame()),
        "rest": case([0, 2, 5]),
    }


def generate(rng):
    data = []
    for _ in range(rng.integer(1, 5)):
        data += frame(*(rng.below(10) for _ in range(rng.choice([0, 1, 2, 3, 5, 8]))))
    data = data[: len(data) - rng.choice([0, 0, 1, 2])]
    chunks = []
    while data:
        size = rng.integer(1, 6)
        chunks.append(data[:size])
        data = data[size:]
    return case(*chunks, limit=rng.choice([4, 8, 300]))


FEATURES = {
    "cut": {"zh": "来的不止一段", "en": "there is more than one chunk"},
    "small": {"zh": "上限不到十个字节", "en": "the limit is below ten bytes"},
}


def features(inputs):
    return {"cut": len(inputs["chunks"]) > 1, "small": inputs["limit"] < 10}
