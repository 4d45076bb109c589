"""Cases of problem 150: nothing, one, several, batches inside of batches, and counts at a frame's limit."""


def case(messages, most=8):
    """`messages`: ints for single messages, lists for batches."""
    return {"messages": messages, "most": most}


def public():
    return {"several": case([3, 1, 2]), "nested": case([7, [8, [9, 4]], 5], most=3), "one": case([6])}


NOTES = {
    "several": {"zh": "三条合成一批。", "en": "Three make one batch."},
    "nested": {
        "zh": "摊平之后有五条：一批三条，再一批两条。",
        "en": "Laid flat there are five: a batch of three, and one of two.",
    },
    "one": {"zh": "只有一条，就是它自己。", "en": "A single one goes as itself."},
}


def fixed():
    return {
        "nothing": case([]),
        "empty_batch": case([[]]),
        "empty_batches_around": case([[], 5, [[], []]]),
        "batch_of_one": case([[4]]),
        "batch_of_batch_of_one": case([[[4]]]),
        "same_message_twice": case([4, 4, 5]),
        "at_the_limit": case([1, 2, 3, 4], most=4),
        "one_over_the_limit": case([1, 2, 3, 4, 5], most=4),
        "twice_the_limit": case([9, 8, 7, 6, 5, 4], most=3),
        "one_a_frame": case([3, 2, 1], most=1),
        "batch_across_the_limit": case([1, [2, 3, 4], 5], most=2),
        "deep": case([[[[1], 2], 3], 4]),
        "order": case([[9, 2], 7, [1]]),
    }


def teach():
    return {
        "nothing": case([]),
        "one": case([1]),
        "two": case([1, 2]),
        "batch": case([[1, 2]]),
        "nested": case([[[1, 2]]]),
        "over": case([1, 2, 3], most=2),
        "two_batches": case([1, 2, 3, 4], most=2),
        "twice": case([1, 1]),
        "order": case([2, 1]),
    }


def generate(rng):
    def some(depth):
        if depth and rng.chance(1, 3):
            return [some(depth - 1) for _ in range(rng.integer(0, 3))]
        return rng.integer(1, 9)

    return case([some(2) for _ in range(rng.integer(0, 6))], rng.choice([1, 2, 3, 8]))


FEATURES = {
    "batch": {"zh": "有一批已经合好的", "en": "a message is a batch already"},
    "over": {"zh": "条数超过一帧的上限", "en": "there are more messages than a frame takes"},
}


def features(inputs):
    return {
        "batch": any(isinstance(m, list) for m in inputs["messages"]),
        "over": len(inputs["messages"]) > inputs["most"],
    }
