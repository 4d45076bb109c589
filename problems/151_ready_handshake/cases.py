"""Cases of problem 151: ranks that listen from the start, late, or never, and answers that take a while."""


def case(delays, messages=("a", "b"), lags=None, attempts=8, every=None):
    """`delays`: after how many polls rank i + 1 begins to listen. `lags`: polls that its answers come later than they could.
    `every`: it answers the first greeting it hears and then every so many."""
    return {
        "ranks": len(delays),
        "messages": list(messages),
        "attempts": attempts,
        "delays": list(delays),
        "lags": list(lags or [0] * len(delays)),
        "every": list(every or [1] * len(delays)),
    }


def public():
    return {"one_late": case([0, 2]), "all_there": case([0, 0, 0]), "one_never": case([0, 99], attempts=3)}


NOTES = {
    "one_late": {
        "zh": "rank 2 晚到；在它答之前，rank 1 已经答了好几次。",
        "en": "Rank 2 is late; rank 1 answers several times before it does.",
    },
    "all_there": {"zh": "都在听：问候一次就够了。", "en": "All listen: one greeting is enough."},
    "one_never": {
        "zh": "rank 2 没有起来：三次之后放弃，一条也不发。",
        "en": "Rank 2 never comes up: given up after three, and nothing is sent.",
    },
}


def fixed():
    return {
        "one_rank": case([0]),
        "one_rank_late": case([3]),
        "last_is_late": case([0, 0, 4]),
        "first_is_late": case([3, 0, 0]),
        "each_later": case([0, 1, 2, 3]),
        "slow_answers": case([0, 0], lags=[2, 0]),
        "in_turn": case([0, 1], every=[2, 2]),
        "busy_and_late": case([0, 2, 1], every=[9, 9, 9]),
        "slow_and_late": case([1, 0, 2], lags=[0, 3, 1]),
        "just_in_time": case([0, 3], attempts=4),
        "just_too_late": case([0, 4], attempts=4),
        "never": case([99], attempts=2),
        "no_messages": case([0, 1], messages=[]),
        "many_messages": case([1, 0], messages=["x", "y", "z", "x"]),
    }


def teach():
    return {
        "there": case([0], ["a"]),
        "late": case([1], ["a"], attempts=3),
        "two": case([0, 1], ["a"], attempts=3),
        "two_later": case([0, 2], ["a"], attempts=4),
        "never": case([9], ["a"], attempts=1),
        "in_turn": case([0, 1], ["a"], attempts=3, every=[9, 9]),
        "three": case([0, 0, 1], ["a"], attempts=4),
    }


def generate(rng):
    ranks = rng.integer(1, 4)
    return case(
        [rng.choice([0, 0, 1, 2, 3]) for _ in range(ranks)],
        [rng.choice(["a", "b", "c"]) for _ in range(rng.integer(0, 3))],
        [rng.choice([0, 0, 1, 2]) for _ in range(ranks)],
        rng.integer(3, 9),
        [rng.choice([1, 1, 2, 3]) for _ in range(ranks)],
    )


FEATURES = {
    "late": {"zh": "有 rank 晚开始听", "en": "a rank begins to listen late"},
    "several": {"zh": "不止一个 rank", "en": "there is more than one rank"},
}


def features(inputs):
    return {"late": any(inputs["delays"]), "several": inputs["ranks"] > 1}
