"""Cases of problem 121: chains that become leaves one after another, locked paths, and sizes that meet the need exactly."""


def case(nodes, need):
    """`nodes`: (id, parent, size, locks, used)."""
    return {"nodes": [list(n) for n in nodes], "need": need}


CHAIN = [(0, -1, 4, 0, 1), (1, 0, 4, 0, 2), (2, 1, 4, 0, 3)]
FORK = [(5, -1, 8, 0, 9), (6, 5, 4, 0, 7), (7, 5, 4, 0, 8), (8, -1, 4, 0, 10)]


def public():
    return {
        "two_leaves": case([(0, -1, 8, 0, 6), (1, 0, 4, 0, 5), (2, 0, 4, 0, 3), (3, -1, 4, 1, 1)], 6),
        "parent_next": case(FORK, 12),
        "nothing_needed": case(CHAIN, 0),
    }


NOTES = {
    "two_leaves": {
        "zh": "3 最久没用，但有人锁着；0 不是叶子。",
        "en": "3 has been unused for longest, but is locked; 0 is no leaf.",
    },
    "parent_next": {
        "zh": "6、7 走了之后 5 成了叶子，而且比 8 更久没用。",
        "en": "With 6 and 7 gone, 5 is a leaf, unused for longer than 8.",
    },
    "nothing_needed": {"zh": "一页都不用腾。", "en": "No room is needed."},
}


def fixed():
    return {
        "empty": case([], 0),
        "chain_all": case(CHAIN, 12),
        "chain_part": case(CHAIN, 5),
        "exactly": case(FORK, 8),
        "one_more": case(FORK, 9),
        "old_parent": case([(0, -1, 4, 0, 1), (1, 0, 4, 0, 8), (2, -1, 4, 0, 5), (3, -1, 4, 0, 6)], 8),
        "new_parent": case([(0, -1, 4, 0, 9), (1, 0, 4, 0, 1), (2, -1, 4, 0, 5), (3, -1, 4, 0, 6)], 12),
        "locked_path": case([(0, -1, 4, 1, 1), (1, 0, 4, 1, 2), (2, 0, 4, 0, 6), (3, -1, 4, 0, 7)], 8),
        "parent_locked_child_not": case([(0, -1, 4, 2, 1), (1, 0, 4, 0, 2), (2, -1, 4, 0, 3)], 8),
        "large_leaf": case([(0, -1, 64, 0, 2), (1, -1, 4, 0, 1), (2, -1, 4, 0, 3)], 6),
        "ids_against_time": case([(9, -1, 4, 0, 1), (4, -1, 4, 0, 2), (1, -1, 4, 0, 3)], 8),
        "sizes_differ": case([(0, -1, 4, 0, 3), (1, -1, 16, 0, 2), (2, -1, 8, 0, 1)], 20),
        "one_child_stays": case([(0, -1, 4, 0, 1), (1, 0, 4, 1, 2), (2, 0, 4, 0, 3), (3, -1, 4, 0, 4)], 8),
        "deep_then_wide": case(
            [(0, -1, 4, 0, 4), (1, 0, 4, 0, 5), (2, 1, 4, 0, 6), (3, -1, 4, 0, 7), (4, -1, 4, 0, 8)], 16
        ),
    }


def teach():
    return {
        "one": case([(0, -1, 2, 0, 1)], 1),
        "two": case([(0, -1, 2, 0, 2), (1, -1, 2, 0, 1)], 1),
        "leaf_first": case([(0, -1, 2, 0, 1), (1, 0, 2, 0, 2)], 1),
        "locked": case([(0, -1, 2, 1, 1), (1, -1, 2, 0, 2)], 1),
        "chain": case([(0, -1, 2, 0, 1), (1, 0, 2, 0, 2)], 3),
        "old_parent": case([(0, -1, 2, 0, 1), (1, 0, 2, 0, 2), (2, -1, 2, 0, 3)], 3),
        "enough": case([(0, -1, 2, 0, 1), (1, -1, 2, 0, 2)], 2),
        "large": case([(0, -1, 2, 0, 1), (1, -1, 6, 0, 2)], 1),
        "parent_used_later": case([(0, -1, 2, 0, 5), (1, 0, 2, 0, 1), (2, -1, 2, 0, 3)], 4),
    }


def generate(rng):
    count = rng.integer(2, 9)
    times = rng.shuffled(range(1, count + 1))
    nodes = []
    for i in range(count):
        parent = -1 if i == 0 or rng.chance(1, 3) else rng.below(i)
        nodes.append([i, parent, rng.choice([4, 4, 8]), 0, times[i]])
    for _ in range(rng.integer(0, 2)):
        at = rng.below(count)
        while at != -1:
            nodes[at][3] += 1
            at = nodes[at][1]
    room = sum(n[2] for n in nodes if n[3] == 0)
    return case(nodes, rng.integer(0, room))


FEATURES = {
    "locked": {"zh": "有节点被锁着", "en": "a node is locked"},
    "deep": {"zh": "树不止一层", "en": "the tree has more than one level"},
}


def features(inputs):
    return {
        "locked": any(n[3] for n in inputs["nodes"]),
        "deep": any(n[1] != -1 for n in inputs["nodes"]),
    }
