"""Cases of problem 101: requests that join out of order, leave in the middle, or are in both lists."""


def case(running, launched):
    return {"running": [list(r) for r in running], "launched": [list(r) for r in launched]}


def public():
    return {
        "joins_late": case([(40, 0, 3), (7, 2, 5)], [(21, 1, 4)]),
        "one_leaves": case([(9, 0, 1), (3, 1, 6), (5, 2, 2)], [(9, 0, 0), (3, 1, 5), (5, 2, 1)]),
        "from_nothing": case([], [(6, 3, 2), (4, 5, 0)]),
    }


NOTES = {
    "joins_late": {
        "zh": "21 比 7 先到，只是 prompt 长，prefill 做得久。",
        "en": "21 arrived before 7; its long prompt took more steps.",
    },
    "one_leaves": {
        "zh": "一步 decode 之后，9 没有剩下的了。",
        "en": "After a decode step nothing remains for 9.",
    },
    "from_nothing": {
        "zh": "4 的回答只有一个 token，prefill 就给完了。",
        "en": "4 wanted one token, which its prefill gave.",
    },
}


def fixed():
    return {
        "empty": case([], []),
        "all_leave": case([(5, 0, 1), (2, 1, 1)], [(5, 0, 0), (2, 1, 0)]),
        "first_of_four_leaves": case(
            [(1, 0, 1), (2, 1, 9), (3, 2, 9), (4, 3, 9)], [(1, 0, 0), (2, 1, 8), (3, 2, 8), (4, 3, 8)]
        ),
        "middle_of_five_leaves": case(
            [(50, 0, 4), (40, 1, 4), (30, 2, 1), (20, 3, 4), (10, 4, 4)],
            [(50, 0, 3), (40, 1, 3), (30, 2, 0), (20, 3, 3), (10, 4, 3)],
        ),
        "large_uids": case([(8000017, 0, 2), (16, 1, 2)], [(97, 2, 3), (1024, 3, 3)]),
        "uids_against_arrival": case([(33, 0, 2), (17, 1, 2)], [(9, 2, 3), (8, 3, 3)]),
        "two_join_between": case([(12, 0, 2), (90, 5, 2)], [(31, 3, 3), (77, 1, 3)]),
        "joins_at_the_front": case([(15, 4, 2)], [(11, 1, 3)]),
        "prefill_only": case([(4, 0, 2), (6, 1, 2)], [(5, 7, 3)]),
        "decode_only": case([(4, 6, 2), (3, 8, 2)], [(4, 6, 1), (3, 8, 1)]),
        "joins_and_finishes": case([(4, 0, 2)], [(5, 1, 0), (6, 2, 1)]),
    }


def teach():
    return {
        "one_leaves": case([(1, 0, 1)], [(1, 0, 0)]),
        "stays": case([(1, 0, 2)], [(1, 0, 1)]),
        "joins_before": case([(2, 1, 1)], [(5, 0, 1)]),
        "uid_order": case([(9, 0, 1)], [(3, 1, 1)]),
        "set_order": case([(17, 0, 1)], [(8, 1, 1)]),
        "hash_order": case([(9, 0, 1)], [(16, 1, 1)]),
        "three": case([(1, 0, 1), (2, 1, 2), (3, 2, 2)], [(1, 0, 0), (2, 1, 1), (3, 2, 1)]),
    }


def generate(rng):
    count = rng.integer(1, 7)
    uids = rng.sample(list(range(1, 200)), count)
    requests = [[uid, arrival, rng.integer(1, 5)] for arrival, uid in enumerate(uids)]
    split = rng.integer(0, count)
    chosen = rng.shuffled(range(count))
    running = [requests[i] for i in sorted(chosen[:split])]
    if running and rng.chance(1, 2):
        return case(running, [[uid, arrival, remain - 1] for uid, arrival, remain in running])
    return case(running, [requests[i] for i in sorted(chosen[split:])])


FEATURES = {
    "leaves": {"zh": "有请求结束了", "en": "a request has ended"},
    "overtaken": {
        "zh": "刚做完 prefill 的请求比在跑的先到",
        "en": "a request that joins arrived before one that runs",
    },
}


def features(inputs):
    latest = max((r[1] for r in inputs["running"]), default=-1)
    known = {r[0] for r in inputs["running"]}
    return {
        "leaves": any(r[2] == 0 for r in inputs["launched"]),
        "overtaken": any(r[1] < latest for r in inputs["launched"] if r[0] not in known),
    }
