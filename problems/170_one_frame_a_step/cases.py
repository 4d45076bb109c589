"""Cases of problem 170: turns of several ranks, rank 0 at most a few steps ahead, with messages that come in between."""


def case(order, *arrivals):
    """`order`: whose step is next. `arrivals[i]`: messages that come just before turn i; later turns have none."""
    more = [[] for _ in range(len(order) - len(arrivals))]
    return {"ranks": max(order) + 1, "order": list(order), "arrivals": [*(list(a) for a in arrivals), *more]}


def public():
    return {
        "in_turn": case([0, 1, 0, 1], [7], [8], [9]),
        "nothing_comes": case([0, 1, 0, 1, 0, 1], [], [], [], [], [5]),
        "ahead": case([0, 0, 1, 1], [3, 4], [5]),
    }


NOTES = {
    "in_turn": {
        "zh": "8 在 rank 1 那一步时到，属于 rank 0 的下一步。",
        "en": "8 comes during rank 1's turn, so it belongs to rank 0's next step.",
    },
    "nothing_comes": {
        "zh": "没有消息的步也有一帧，是空的。",
        "en": "Steps without messages have a frame too, an empty one.",
    },
    "ahead": {
        "zh": "rank 0 走在前面两步：rank 1 这时有两帧等着。",
        "en": "Rank 0 is two steps ahead: two frames wait for rank 1.",
    },
}


def fixed():
    return {
        "one_rank": case([0, 0, 0], [1, 2], [], [3]),
        "three_ranks": case([0, 1, 2, 0, 2, 1], [4], [], [], [5, 6]),
        "three_ahead": case([0, 0, 0, 1, 1, 1], [1], [2], [3]),
        "empty_first": case([0, 0, 1, 1], [], [8]),
        "empty_between": case([0, 0, 0, 1, 1, 1], [1], [], [2]),
        "several_at_once": case([0, 1, 0, 1], [5, 3, 9, 1], [], [2, 2]),
        "one_slow_rank": case([0, 2, 0, 2, 0, 2, 1, 1, 1], [1], [], [2], [], [3]),
        "idle": case([0, 1, 0, 1]),
        "comes_while_behind": case([0, 0, 1, 0, 1, 1], [6], [], [7], [], [8]),
        "four_ranks": case([0, 3, 2, 1, 0, 1, 2, 3], [4, 5, 6], [], [], [], [7]),
        "unsorted": case([0, 1, 0, 1], [9, 2], [], [8, 1]),
    }


def teach():
    return {
        "one": case([0, 1], [1]),
        "empty": case([0, 1, 0, 1], [], [], [1]),
        "two": case([0, 1], [1, 2]),
        "ahead": case([0, 0, 1, 1], [1], [2]),
        "alone": case([0], [1]),
        "ahead_empty": case([0, 0, 1, 1], [], [1]),
        "order": case([0, 1], [2, 1]),
    }


def generate(rng):
    ranks = rng.integer(2, 4)
    steps = rng.integer(2, 4)
    done = [0] * ranks
    order = []
    while min(done) < steps:
        rank = rng.choice([r for r in range(ranks) if done[r] < steps and (r == 0 or done[r] < done[0])])
        done[rank] += 1
        order.append(rank)
    arrivals = [[rng.integer(1, 9) for _ in range(rng.choice([0, 0, 1, 2]))] for _ in order]
    return case(order, *arrivals)


FEATURES = {
    "empty": {"zh": "有的步没有消息", "en": "some step has no messages"},
    "ahead": {"zh": "rank 0 连着走了两步", "en": "rank 0 does two steps in a row"},
    "several": {"zh": "不止一个 rank", "en": "there is more than one rank"},
}


def features(inputs):
    order = inputs["order"]
    return {
        "empty": any(not a for a in inputs["arrivals"]),
        "ahead": any(order[i : i + 2] == [0, 0] for i in range(len(order))),
        "several": inputs["ranks"] > 1,
    }
