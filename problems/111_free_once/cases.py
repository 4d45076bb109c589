"""Cases of problem 111: prompts in several chunks, aborts before, during and after, uids that come back."""


def case(free, *events):
    return {"free": list(free), "events": [list(e) if len(e) == 3 else [*e, 0] for e in events]}


def public():
    return {
        "grows": case([3, 1, 4, 5, 9], ("take", 7, 2), ("take", 8, 1), ("take", 7, 1), ("end", 7)),
        "late_abort": case([2, 6, 5], ("take", 1, 2), ("end", 1), ("abort", 1)),
        "unknown": case([4, 2], ("take", 5, 1), ("abort", 6)),
    }


NOTES = {
    "grows": {
        "zh": "7 分两次拿了 3 页，结束时都还回来。",
        "en": "7 took 3 pages in two goes, and gives all of them back.",
    },
    "late_abort": {"zh": "取消来晚了：1 已经结束。", "en": "The abort comes late: 1 has ended."},
    "unknown": {"zh": "取消一个没见过的请求。", "en": "An abort of a request nobody knows."},
}


def fixed():
    return {
        "nothing": case([1, 2]),
        "abort_in_prefill": case(
            range(10, 20), ("take", 1, 3), ("take", 2, 2), ("take", 1, 3), ("abort", 1), ("take", 3, 4)
        ),
        "end_after_abort": case(range(6), ("take", 1, 2), ("abort", 1), ("end", 1), ("take", 2, 3)),
        "abort_twice": case(range(6), ("take", 4, 2), ("take", 5, 2), ("abort", 4), ("abort", 4), ("end", 5)),
        "uid_comes_back": case(
            range(8), ("take", 1, 2), ("end", 1), ("take", 1, 3), ("end", 1), ("take", 2, 1)
        ),
        "uid_comes_back_after_abort": case(
            range(8), ("take", 1, 1), ("abort", 1), ("take", 1, 2), ("abort", 1)
        ),
        "all_taken": case([7, 3], ("take", 2, 2), ("end", 2), ("take", 1, 2)),
        "end_in_the_middle": case(
            range(9), ("take", 3, 2), ("take", 2, 2), ("take", 1, 2), ("end", 2), ("take", 3, 3)
        ),
        "two_aborts_meet_end": case(
            range(7), ("take", 1, 3), ("take", 2, 2), ("abort", 1), ("end", 2), ("end", 1), ("abort", 2)
        ),
        "grows_by_one": case(
            range(5), ("take", 9, 1), ("take", 9, 1), ("take", 9, 1), ("end", 9), ("abort", 9)
        ),
        "zero_pages": case([8, 1, 6], ("take", 1, 1), ("take", 1, 0), ("take", 2, 1), ("end", 1)),
        "abort_unknown_first": case([5, 6, 7], ("abort", 1), ("take", 1, 2)),
    }


def teach():
    return {
        "end": case([1, 2], ("take", 1, 1), ("end", 1)),
        "two_goes": case([1, 2, 3], ("take", 1, 1), ("take", 1, 1), ("end", 1)),
        "abort": case([1, 2], ("take", 1, 1), ("abort", 1)),
        "end_abort": case([1], ("take", 1, 1), ("end", 1), ("abort", 1)),
        "abort_end": case([1], ("take", 1, 1), ("abort", 1), ("end", 1)),
        "again": case([1, 2], ("take", 1, 1), ("end", 1), ("take", 1, 1), ("end", 1)),
        "stays": case([1, 2], ("take", 1, 1)),
    }


def generate(rng):
    free, events = rng.shuffled(range(30)), []
    left, held = 30, {}
    for _ in range(rng.integer(3, 14)):
        uid = rng.integer(1, 4)
        if rng.chance(3, 5):
            count = min(left, rng.integer(1, 3))
            left -= count
            held[uid] = held.get(uid, 0) + count
            events.append(("take", uid, count))
        else:
            left += held.pop(uid, 0)
            events.append((rng.choice(["end", "abort"]), uid))
    return case(free, *events)


FEATURES = {
    "abort": {"zh": "有取消", "en": "something is aborted"},
    "grows": {"zh": "有请求不止一次拿页", "en": "a request takes pages more than once"},
}


def features(inputs):
    takes = [uid for kind, uid, _ in inputs["events"] if kind == "take"]
    return {"abort": any(e[0] == "abort" for e in inputs["events"]), "grows": len(takes) > len(set(takes))}
