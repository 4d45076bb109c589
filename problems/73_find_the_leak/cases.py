"""Cases of problem 73: logs of an allocator, right ones and such with one or several faults."""


def take(uid, *pages):
    return ("take", uid, list(pages))


def give(uid, *pages):
    return ("give", uid, list(pages))


def finish(uid):
    return ("finish", uid)


def case(*log):
    return {"log": list(log)}


def public():
    return {
        "one_leak": case(take(0, 1, 2), take(1, 3), give(0, 2), finish(0)),
        "late_but_fine": case(take(0, 4), finish(0), take(1, 5), give(0, 4)),
        "given_twice": case(take(0, 1), give(0, 1), finish(0), take(1, 1), give(0, 1), take(2, 1)),
    }


NOTES = {
    "one_leak": {
        "zh": "请求 0 结束了，第 1 页没有还；请求 1 还在跑。",
        "en": "Request 0 has ended with page 1 not given back; request 1 is running.",
    },
    "late_but_fine": {"zh": "先结束，后归还。", "en": "Ended first, gave back later."},
    "given_twice": {
        "zh": "请求 0 又还了一次已经属于请求 1 的页。",
        "en": "Request 0 gives back once more what is request 1's by now.",
    },
}


def fixed():
    return {
        "nothing": case(),
        "clean": case(take(0, 0, 1), take(1, 2), give(0, 0, 1), finish(0), give(1, 2), finish(1)),
        "all_running": case(take(0, 0, 1), take(1, 2, 3)),
        "uid_zero_and_page_zero": case(take(0, 0), take(1, 0), finish(0)),
        "page_zero_leaks": case(take(3, 0, 5), finish(3), give(3, 5)),
        "reused_page": case(take(0, 7), give(0, 7), finish(0), take(1, 7), give(1, 7), finish(1), take(2, 7)),
        "two_owners_one_leaves": case(take(1, 4), take(2, 4), give(1, 4), finish(1), finish(2)),
        "two_owners_both_leave": case(take(1, 4), take(2, 4), give(2, 4), give(1, 4), finish(1), finish(2)),
        "three_owners": case(take(1, 4), take(2, 4), take(3, 4), give(2, 4), finish(2), take(5, 4)),
        "free_page_given": case(take(1, 4), give(1, 4, 4), give(1, 4), finish(1), give(2, 9)),
        "somebody_elses": case(take(1, 4, 5), take(2, 6), give(2, 5, 6), finish(2), finish(1), give(1, 4)),
        "unsorted": case(take(5, 9, 2, 7, 4), finish(5), take(6, 8, 1), finish(6), give(5, 7)),
        "late_and_leak": case(take(1, 1, 2, 3), finish(1), take(2, 4), give(1, 1, 3), finish(2)),
        "faults_twice": case(take(0, 3), take(1, 3), give(1, 3), take(2, 3), give(4, 3), give(4, 3)),
    }


def teach():
    return {
        "leak": case(take(0, 0), finish(0)),
        "running": case(take(0, 0)),
        "late": case(take(0, 1), finish(0), give(0, 1)),
        "twice": case(take(0, 1), take(1, 1)),
        "reused": case(take(0, 1), give(0, 1), take(1, 1)),
        "not_mine": case(take(0, 1), give(1, 1)),
        "free": case(give(1, 1)),
        "second_owner_leaves": case(take(0, 1), take(1, 1), give(0, 1), finish(1)),
        "unsorted": case(take(1, 2, 1), finish(1)),
    }


def generate(rng):
    """Requests that come and go over a few pages; now and then one forgets, repeats, or takes what is not free."""
    log, owned, free = [], {}, list(range(8))
    for uid in range(rng.integer(3, 7)):
        pages = [free.pop(rng.below(len(free))) for _ in range(min(len(free), rng.integer(1, 3)))]
        if rng.chance(1, 4):
            pages.append(rng.below(8))
        pages = sorted(set(pages), reverse=rng.chance(1, 2))
        log.append(take(uid, *pages))
        owned[uid] = pages
        if rng.chance(2, 3):
            leaving = rng.choice(sorted(owned))
            given = [p for p in owned.pop(leaving) if rng.chance(4, 5)]
            free += [p for p in given if p not in free]
            entries = [give(leaving, *given), finish(leaving)]
            log += entries if rng.chance(1, 2) else entries[::-1]
            if rng.chance(1, 4):
                log.append(give(leaving, *given[:1]))
    return {"log": log}


FEATURES = {
    "late": {"zh": "有请求结束之后才归还", "en": "some request gives back after its end"},
    "running": {"zh": "日志结束时有请求还在跑", "en": "some request is still running at the end"},
}


def features(inputs):
    finished, late = set(), False
    for what, uid, *_ in inputs["log"]:
        if what == "finish":
            finished.add(uid)
        late |= what == "give" and uid in finished
    return {"late": late, "running": any(uid not in finished for _, uid, *_ in inputs["log"])}
