"""Cases of problem 113: hits that nobody reads, that others read in part or as a whole, and pools that are just enough."""


def case(kv_tokens, matched=0, locked=0, free=0, evictable=0, reserved=0, page_size=4):
    return {
        "kv_tokens": kv_tokens,
        "matched": matched,
        "locked": locked,
        "free_pages": free,
        "evictable_pages": evictable,
        "reserved_pages": reserved,
        "page_size": page_size,
    }


def public():
    return {
        "hit_is_all_there_is": case(24, matched=4, free=1, evictable=4),
        "others_read_it": case(24, matched=4, locked=4, free=1, evictable=4),
        "no_hit": case(10, free=2, evictable=3, reserved=2),
    }


NOTES = {
    "hit_is_all_there_is": {
        "zh": "能淘汰的 4 页正是命中的 4 页：锁住之后只剩 1 页空的。",
        "en": "The 4 evictable pages are the very 4 that were hit: locked, they leave 1 free page.",
    },
    "others_read_it": {
        "zh": "命中的 4 页别人已经锁着，本来就不在能淘汰的里面。",
        "en": "Others have locked the 4 pages already, so they were not among the evictable ones.",
    },
    "no_hit": {"zh": "没有命中：没有要锁的。", "en": "No hit: nothing to lock."},
}


def fixed():
    return {
        "exact": case(24, matched=2, free=2, evictable=4),
        "one_short": case(24, matched=2, free=1, evictable=4),
        "partly_locked": case(40, matched=6, locked=4, free=2, evictable=5, reserved=1),
        "begun_page": case(21, matched=3, locked=0, free=0, evictable=6),
        "page_border": case(20, matched=3, locked=1, free=1, evictable=3),
        "reserved_takes_all": case(8, matched=1, locked=1, free=3, evictable=0, reserved=3),
        "reserved_and_hit": case(16, matched=2, locked=0, free=4, evictable=2, reserved=3),
        "big_hit_small_rest": case(400, matched=99, locked=0, free=1, evictable=99),
        "big_hit_no_room": case(400, matched=98, locked=0, free=1, evictable=98),
        "nothing_free": case(5, free=0, evictable=0),
        "page_size_one": case(9, matched=5, locked=2, free=1, evictable=6, page_size=1),
        "available_below_zero": case(12, matched=2, locked=0, free=1, evictable=2, reserved=3),
    }


def teach():
    return {
        "hit": case(4, matched=1, free=0, evictable=1, page_size=2),
        "hit_locked": case(4, matched=1, locked=1, free=1, page_size=2),
        "begun": case(3, free=1, page_size=2),
        "reserved": case(2, free=1, reserved=1, page_size=2),
        "evictable": case(2, evictable=1, page_size=2),
        "enough": case(4, matched=1, free=1, evictable=1, page_size=2),
        "below_zero": case(2, free=0, reserved=1, page_size=2),
    }


def generate(rng):
    page_size = rng.choice([1, 4, 16])
    matched = rng.integer(0, 8)
    locked = rng.integer(0, matched)
    evictable = matched - locked + rng.integer(0, 5)
    free = rng.integer(0, 6)
    reserved = rng.integer(0, free + 1)
    tokens = matched * page_size + rng.integer(1, 6 * page_size)
    return case(tokens, matched, locked, free, evictable, reserved, page_size)


FEATURES = {
    "unread": {"zh": "命中的页里有没人锁着的", "en": "some pages that were hit are not locked by anybody"},
    "locked": {"zh": "命中的页里有别人锁着的", "en": "some pages that were hit are locked by others"},
    "reserved": {"zh": "有页答应给了在跑的请求", "en": "pages are promised to running requests"},
}


def features(inputs):
    return {
        "unread": inputs["matched"] > inputs["locked"],
        "locked": inputs["locked"] > 0,
        "reserved": inputs["reserved_pages"] > 0,
    }
