"""Cases of problem 123: paths that share nodes, locked more than once and unlocked in another order."""


def case(parents, sizes, *ops):
    return {"parents": list(parents), "sizes": list(sizes), "ops": [list(op) for op in ops]}


FORK = ([-1, 0, 0, 1], [8, 4, 6, 2])


def public():
    return {
        "one_path": case(*FORK, ("lock", 3)),
        "two_paths": case(*FORK, ("lock", 3), ("lock", 2), ("unlock", 3)),
        "root": case(*FORK, ("lock", -1), ("unlock", -1)),
    }


NOTES = {
    "one_path": {"zh": "锁 3，就是锁 3、1、0。", "en": "Locking 3 locks 3, 1 and 0."},
    "two_paths": {
        "zh": "3 走了之后，0 还有 2 那一把锁。",
        "en": "With 3 unlocked, node 0 is still locked through 2.",
    },
    "root": {
        "zh": "什么都没命中：在根上，没有要锁的。",
        "en": "Nothing was hit: at the root there is nothing to lock.",
    },
}


def fixed():
    return {
        "nothing": case(*FORK),
        "same_twice": case(*FORK, ("lock", 1), ("lock", 1)),
        "same_twice_one_back": case(*FORK, ("lock", 1), ("lock", 1), ("unlock", 1)),
        "all_back": case(*FORK, ("lock", 3), ("lock", 2), ("unlock", 2), ("unlock", 3)),
        "inner_then_leaf": case(*FORK, ("lock", 1), ("lock", 3), ("unlock", 1)),
        "leaf_then_inner": case(*FORK, ("lock", 3), ("lock", 0), ("unlock", 3)),
        "chain": case([-1, 0, 1, 2, 3], [1, 2, 4, 8, 16], ("lock", 4), ("lock", 2), ("unlock", 4)),
        "two_trees": case([-1, -1, 0, 1], [4, 4, 8, 8], ("lock", 2), ("lock", 3), ("unlock", 2)),
        "parents_behind_children": case([2, 2, -1], [4, 8, 16], ("lock", 0), ("lock", 1), ("unlock", 0)),
        "three_readers": case(*FORK, ("lock", 3), ("lock", 3), ("lock", 2), ("unlock", 3), ("unlock", 2)),
        "single": case([-1], [4], ("lock", 0), ("lock", 0), ("unlock", 0), ("unlock", 0)),
        "again_after_unlock": case(*FORK, ("lock", 2), ("unlock", 2), ("lock", 2)),
    }


def teach():
    return {
        "single": case([-1], [2], ("lock", 0)),
        "chain": case([-1, 0], [2, 3], ("lock", 1)),
        "back": case([-1, 0], [2, 3], ("lock", 1), ("unlock", 1)),
        "twice": case([-1], [2], ("lock", 0), ("lock", 0)),
        "twice_back": case([-1], [2], ("lock", 0), ("lock", 0), ("unlock", 0)),
        "fork": case([-1, 0, 0], [2, 3, 5], ("lock", 1), ("lock", 2)),
        "fork_back": case([-1, 0, 0], [2, 3, 5], ("lock", 1), ("lock", 2), ("unlock", 1)),
        "grandchild": case([-1, 0, 1], [1, 2, 3], ("lock", 1), ("lock", 2)),
    }


def generate(rng):
    count = rng.integer(1, 8)
    parents = [-1 if i == 0 or rng.chance(1, 4) else rng.below(i) for i in range(count)]
    sizes = [rng.integer(1, 16) for _ in range(count)]
    ops, open_locks = [], []
    for _ in range(rng.integer(1, 10)):
        if open_locks and rng.chance(2, 5):
            node = rng.choice(open_locks)
            open_locks.remove(node)
            ops.append(("unlock", node))
        else:
            node = rng.below(count)
            open_locks.append(node)
            ops.append(("lock", node))
    return case(parents, sizes, *ops)


FEATURES = {
    "twice": {"zh": "同一个节点被锁了不止一次", "en": "a node is locked more than once"},
    "unlock": {"zh": "有解锁", "en": "something is unlocked"},
}


def features(inputs):
    path = []
    for kind, node in inputs["ops"]:
        while kind == "lock" and node != -1:
            path.append(node)
            node = inputs["parents"][node]
    return {
        "twice": len(path) > len(set(path)),
        "unlock": any(kind == "unlock" for kind, _ in inputs["ops"]),
    }
