"""Cases of problem 124: operations on a tree, in which a node is cut by an insertion or by a lock, with and without readers
and children."""


def case(page_size, *ops):
    """`ops`: ("insert", tokens), ("lock", tokens), ("unlock", number of the lock, from 0), ("evict", tokens' number)."""
    return {
        "page_size": page_size,
        "ops": [[kind, list(x) if isinstance(x, (list, tuple)) else x] for kind, x in ops],
    }


LONG = [1, 2, 3, 4, 5, 6, 7, 8]


def public():
    return {
        "by_insertion": case(2, ("insert", LONG), ("insert", [1, 2, 3, 4, 9, 9])),
        "with_a_reader": case(2, ("insert", LONG), ("lock", LONG), ("insert", [1, 2, 3, 4, 9, 9])),
        "by_a_lock": case(4, ("insert", LONG), ("lock", [1, 2, 3, 4])),
    }


NOTES = {
    "by_insertion": {"zh": "两条在第 4 个 token 之后分开。", "en": "The two part after token 4."},
    "with_a_reader": {
        "zh": "切的时候有请求正在读整条：两段都有它的锁，它读到的还是那 8 个位置。",
        "en": "A request reads all of it meanwhile: both parts keep its lock, and it still reads the same 8 places.",
    },
    "by_a_lock": {
        "zh": "只锁前 4 个：从那里切开。",
        "en": "Only the first 4 are locked: that is where it is cut.",
    },
}


def fixed():
    return {
        "page_size_one": case(1, ("insert", [1, 2, 3]), ("insert", [1, 2, 4])),
        "two_cuts": case(2, ("insert", LONG), ("insert", [1, 2, 9, 9]), ("insert", [1, 2, 3, 4, 5, 6, 0, 0])),
        "cut_above_children": case(
            1,
            ("insert", [1, 2, 3, 4]),
            ("insert", [1, 2, 3, 4, 5]),
            ("insert", [1, 2, 3, 4, 6]),
            ("insert", [1, 9]),
        ),
        "beside_a_sibling": case(1, ("insert", [7, 7]), ("insert", [1, 2, 3]), ("insert", [1, 5])),
        "reader_leaves": case(
            2, ("insert", LONG), ("lock", LONG), ("insert", [1, 2, 3, 4, 9, 9]), ("unlock", 0)
        ),
        "two_readers": case(2, ("insert", LONG), ("lock", LONG), ("lock", [1, 2, 3, 4]), ("unlock", 0)),
        "two_readers_other_order": case(
            2, ("insert", LONG), ("lock", LONG), ("lock", [1, 2]), ("unlock", 1), ("unlock", 0)
        ),
        "evicted_after_the_cut": case(2, ("insert", LONG), ("insert", [1, 2, 3, 4, 9, 9]), ("evict", 3)),
        "locked_part_stays": case(2, ("insert", LONG), ("lock", [1, 2, 3, 4]), ("evict", 4)),
        "found_again": case(
            1, ("insert", [1, 2, 3]), ("insert", [1, 2, 4]), ("insert", [1, 2, 3]), ("insert", [1, 2, 4])
        ),
        "prefix_of_it": case(2, ("insert", LONG), ("insert", [1, 2, 3, 4])),
    }


def teach():
    return {
        "by_insertion": case(1, ("insert", [1, 2]), ("insert", [1, 3])),
        "prefix": case(1, ("insert", [1, 2]), ("insert", [1])),
        "with_a_reader": case(1, ("insert", [1, 2]), ("lock", [1, 2]), ("insert", [1, 3])),
        "by_a_lock": case(1, ("insert", [1, 2]), ("lock", [1])),
        "reader_leaves": case(1, ("insert", [1, 2]), ("lock", [1, 2]), ("insert", [1, 3]), ("unlock", 0)),
        "found_again": case(1, ("insert", [1, 2]), ("insert", [1, 3]), ("insert", [1, 2])),
    }


def generate(rng):
    page_size = rng.choice([1, 2])
    ops, inserted, locks = [], [], 0
    for _ in range(rng.integer(3, 6)):
        if inserted and rng.chance(1, 3):
            whole = rng.choice(inserted)
            ops.append(("lock", whole[: rng.integer(1, len(whole) // page_size) * page_size]))
            locks += 1
            continue
        start = rng.choice(inserted)[: rng.integer(0, 3) * page_size] if inserted else []
        inserted.append(start + [rng.integer(1, 3) for _ in range(rng.integer(1, 3) * page_size)])
        ops.append(("insert", inserted[-1]))
    if locks and rng.chance(1, 2):
        ops.append(("unlock", rng.below(locks)))
    return case(page_size, *ops)


FEATURES = {
    "reader": {"zh": "有请求锁着一段前缀", "en": "a request has locked a prefix"},
    "inserts": {"zh": "插入了不止一条", "en": "more than one sequence is inserted"},
}


def features(inputs):
    kinds = [kind for kind, _ in inputs["ops"]]
    return {"reader": "lock" in kinds, "inserts": kinds.count("insert") > 1}
