"""Cases of problem 211: a few decode steps on one graph, batches growing and shrinking."""

from judge.core import draw
from judge.core.rng import Rng


def batch(*rows):
    """Each row: token, position, slot."""
    return {
        name: draw.i32([row[i] for row in rows]) for i, name in enumerate(("ids", "positions", "out_loc"))
    }


def case(size, slots, dummy_slot, *batches):
    return {"batches": list(batches), "size": size, "slots": slots, "dummy_slot": dummy_slot}


def drawn(rng, size, counts):
    """Steps of so many requests each. Whoever is beyond the next step's count has ended, and its slot is given away."""
    slots = sum(counts) + 2
    free = rng.shuffled(range(slots))
    dummy_slot = free.pop()
    batches, last = [], []
    for count in counts:
        freed = last[count:]
        last = [freed.pop() if freed else free.pop() for _ in range(count)]
        batches.append(batch(*((rng.integer(1, 90), rng.integer(1, 60), slot) for slot in last)))
    return case(size, slots, dummy_slot, *batches)


def public():
    return {
        "two_steps": case(2, 6, 5, batch((7, 3, 0), (8, 1, 2)), batch((9, 4, 2))),
        "full": case(2, 4, 3, batch((4, 2, 1), (6, 5, 2))),
    }


NOTES = {
    "two_steps": {
        "zh": "第二批只有一个请求，分到了 2 号格：第 1 行不能再往那里写，要写到 5 号格。",
        "en": "The second batch has one request, which got slot 2: row 1 must not write there again, but to slot 5.",
    },
    "full": {"zh": "正好装满。", "en": "An exact fit."},
}


def fixed():
    sizes = {
        "shrinking": (4, [4, 3, 1]),
        "growing": (4, [1, 2, 4]),
        "same": (3, [3, 3, 3]),
        "one_row": (1, [1, 1]),
        "half_empty": (8, [3]),
        "up_and_down": (4, [2, 4, 2, 3]),
        "always_one": (4, [1, 1, 1]),
        "many": (8, [8, 5, 5, 8, 1]),
    }
    return {name: drawn(Rng(f"211 {name}".encode()), *given) for name, given in sizes.items()}


def teach():
    return {
        "one": case(1, 3, 2, batch((5, 2, 1))),
        "padded": case(2, 3, 2, batch((5, 2, 1))),
        "twice": case(1, 4, 3, batch((5, 2, 1)), batch((6, 3, 2))),
        "smaller": case(2, 5, 4, batch((5, 2, 1), (6, 3, 2)), batch((7, 1, 2))),
        "dummy_zero": case(2, 3, 0, batch((5, 2, 1))),
    }


def generate(rng):
    size = rng.choice([2, 4, 8])
    return drawn(rng, size, [rng.integer(1, size) for _ in range(rng.integer(1, 4))])


FEATURES = {
    "smaller": {"zh": "有一批比图小", "en": "a batch is smaller than the graph"},
    "steps": {"zh": "不止一批", "en": "there is more than one batch"},
}


def features(inputs):
    return {
        "smaller": any(len(b["ids"]) < inputs["size"] for b in inputs["batches"]),
        "steps": len(inputs["batches"]) > 1,
    }
