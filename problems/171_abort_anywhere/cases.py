"""Cases of problem 171: one request in each of the places where it can be, on the GPU and not, with and without shared pages."""


def case(
    uid, waiting=(), prefilling=(), decoding=(), leaving=(), in_flight=(), free_pages=(0,), free_rows=(9,)
):
    return {
        "uid": uid,
        "waiting": list(waiting),
        "prefilling": [list(r) for r in prefilling],
        "decoding": [list(r) for r in decoding],
        "leaving": [list(r) for r in leaving],
        "in_flight": list(in_flight),
        "free_pages": list(free_pages),
        "free_rows": list(free_rows),
    }


A = (4, 1, [5, 6, 7], 1)
B = (8, 2, [11, 12], 0)
C = (3, 0, [5, 13, 14, 15], 1)


def public():
    return {
        "decoding": case(4, decoding=[A, B]),
        "on_the_gpu": case(8, waiting=[6], decoding=[A, B], in_flight=[4, 8]),
        "gone": case(7, waiting=[6], decoding=[A]),
    }


NOTES = {
    "decoding": {
        "zh": "页 5 是和前缀缓存共用的，不还；6、7 还掉。",
        "en": "Page 5 is shared with the prefix cache and stays; 6 and 7 go back.",
    },
    "on_the_gpu": {
        "zh": "8 的批还在 GPU 上：先移到 leaving，什么都不还。",
        "en": "The batch with 8 is on the GPU: it moves to leaving, and nothing is given back yet.",
    },
    "gone": {"zh": "7 早就结束了。", "en": "7 ended long ago."},
}


def fixed():
    return {
        "waiting": case(6, waiting=[2, 6, 9], decoding=[A]),
        "waiting_alone": case(6, waiting=[6]),
        "half_prefilled": case(8, prefilling=[B], decoding=[A], in_flight=[4]),
        "half_prefilled_shared": case(3, prefilling=[C], decoding=[A]),
        "half_prefilled_on_the_gpu": case(3, prefilling=[C], decoding=[B], in_flight=[3]),
        "decoding_shared": case(3, decoding=[A, C, B], in_flight=[]),
        "decoding_on_the_gpu": case(4, decoding=[A, B, C], in_flight=[4, 8, 3]),
        "others_on_the_gpu": case(4, prefilling=[C], decoding=[A, B], in_flight=[3]),
        "leaving_already": case(4, decoding=[B], leaving=[A], in_flight=[4, 8]),
        "leaving_and_landed": case(4, waiting=[1], leaving=[A, C], in_flight=[]),
        "all_shared": case(5, decoding=[(5, 3, [1, 2], 2)]),
        "nobody_there": case(5),
    }


def teach():
    return {
        "waiting": case(1, waiting=[1]),
        "prefilling": case(1, prefilling=[(1, 0, [2], 0)]),
        "decoding": case(1, decoding=[(1, 0, [2], 0)]),
        "shared": case(1, decoding=[(1, 0, [2, 3], 1)]),
        "on_the_gpu": case(1, decoding=[(1, 0, [2], 0)], in_flight=[1]),
        "leaving": case(1, leaving=[(1, 0, [2], 0)], in_flight=[1]),
        "gone": case(1, waiting=[2]),
    }


def generate(rng):
    uids = rng.sample(list(range(1, 20)), 6)
    pages = rng.shuffled(range(20, 60))
    reqs = []
    for row, uid in enumerate(uids):
        own = [pages.pop() for _ in range(rng.integer(1, 3))]
        reqs.append((uid, row, own, rng.integer(0, len(own) - 1)))
    waiting, prefilling, decoding, leaving = [uids[0]], [reqs[1]], reqs[2:5], [reqs[5]]
    in_flight = [uids[5]] + [uid for uid in uids[1:5] if rng.chance(1, 2)]
    return case(rng.choice([*uids, 99]), waiting, prefilling, decoding, leaving, in_flight, pages[:2], [7])


FEATURES = {
    "flight": {"zh": "它的批还在 GPU 上", "en": "its batch is on the GPU"},
    "prefilling": {"zh": "它 prefill 到一半", "en": "it is half prefilled"},
    "shared": {"zh": "它和缓存共用着页", "en": "it shares pages with the cache"},
}


def features(inputs):
    mine = [r for name in ("prefilling", "decoding") for r in inputs[name] if r[0] == inputs["uid"]]
    return {
        "flight": inputs["uid"] in inputs["in_flight"],
        "prefilling": any(r[0] == inputs["uid"] for r in inputs["prefilling"]),
        "shared": any(r[3] for r in mine),
    }
