"""Cases of problem 102: requests that arrive while others decode, answers of one token, gaps in which nobody is there."""


def case(requests, max_running=4):
    """`requests`: (uid, arrival, max_tokens, tokens that the model says)."""
    return {
        "requests": [[uid, arrival, most] for uid, arrival, most, _ in requests],
        "max_running": max_running,
        "says": [list(tokens) for *_, tokens in requests],
    }


def public():
    return {
        "joins_while_decoding": case([(1, 0, 4, [5, 6, 7, 8]), (2, 2, 2, [3, 4])]),
        "no_room": case([(1, 0, 3, [5, 6, 7]), (2, 0, 2, [3, 4]), (3, 0, 1, [9])], 2),
        "nobody_for_a_while": case([(4, 0, 1, [6]), (5, 3, 2, [7, 0])]),
    }


NOTES = {
    "joins_while_decoding": {
        "zh": "2 在第 2 步到：那一步先 prefill 它，然后两个一起 decode。",
        "en": "2 arrives at step 2, which is its prefill; then both decode together.",
    },
    "no_room": {"zh": "最多两个：3 等 2 走了才进来。", "en": "Two at most: 3 comes in when 2 has left."},
    "nobody_for_a_while": {"zh": "没有人的步是空闲的一步。", "en": "Steps without anybody are idle ones."},
}


def fixed():
    return {
        "nobody": case([]),
        "one_token": case([(3, 0, 1, [8])]),
        "eos_first": case([(3, 0, 5, [0, 7, 7])]),
        "eos_in_the_middle": case([(3, 0, 5, [4, 0, 7, 7, 7]), (6, 0, 4, [1, 2, 3, 4])]),
        "one_at_a_time": case([(1, 0, 2, [4, 5]), (2, 0, 2, [6, 7]), (3, 0, 2, [8, 9])], 1),
        "three_together": case([(9, 0, 2, [1, 2]), (4, 0, 3, [3, 4, 5]), (7, 0, 2, [6, 0])]),
        "later_one_ends_first": case([(1, 0, 6, [1, 2, 3, 4, 5, 6]), (2, 1, 1, [9])]),
        "arrives_later": case([(1, 2, 2, [4, 5])]),
        "steady": case([(i, i, 3, [i, i + 1, i + 2]) for i in range(1, 6)], 3),
        "full_then_gap": case([(1, 0, 1, [3]), (2, 0, 1, [4]), (3, 5, 1, [5])], 1),
        "eos_is_last": case([(1, 0, 3, [4, 5, 0]), (2, 0, 3, [4, 0, 0])]),
    }


def teach():
    return {
        "one": case([(1, 0, 1, [5])]),
        "two_tokens": case([(1, 0, 2, [5, 6])]),
        "eos": case([(1, 0, 2, [0, 6])]),
        "two": case([(1, 0, 1, [5]), (2, 0, 1, [6])]),
        "no_room": case([(1, 0, 1, [5]), (2, 0, 1, [6])], 1),
        "joins": case([(1, 0, 3, [5, 6, 7]), (2, 1, 1, [8])]),
        "gap": case([(1, 1, 1, [5])]),
    }


def generate(rng):
    requests, arrival = [], 0
    for uid in range(1, rng.integer(2, 6)):
        most = rng.integer(1, 5)
        requests.append((uid, arrival, most, [rng.below(9) for _ in range(most)]))
        arrival += rng.choice([0, 0, 1, 3])
    return case(requests, rng.integer(1, 4))


FEATURES = {
    "later": {"zh": "有请求晚到", "en": "a request arrives later"},
    "full": {"zh": "请求比位置多", "en": "there are more requests than places"},
    "eos": {"zh": "有回答提前结束", "en": "an answer ends early"},
}


def features(inputs):
    return {
        "later": any(arrival > 0 for _, arrival, _ in inputs["requests"]),
        "full": len(inputs["requests"]) > inputs["max_running"],
        "eos": any(0 in says[:-1] for says in inputs["says"]),
    }
