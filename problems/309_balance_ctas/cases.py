"""Cases of problem 309: pieces of decode and prefill, alone and mixed."""

from judge.core.rng import Rng


def case(work, num_ctas):
    return {"work": [tuple(w) for w in work], "num_ctas": num_ctas}


def drawn(rng, count, num_ctas):
    work = []
    for _ in range(count):
        kv = rng.choice([0, 1, 16, rng.integer(1, 60), rng.integer(1, 400)])
        work.append((1 if rng.chance(1, 2) else rng.integer(1, 128), kv))
    return case(work, num_ctas)


def public():
    return {
        "four_on_two": case([(1, 8), (1, 100), (1, 50), (1, 40)], 2),
        "prefill_costs_more": case([(64, 64), (1, 150), (1, 90), (16, 100)], 2),
        "equal_costs": case([(1, 10), (1, 10), (1, 10)], 2),
    }


NOTES = {
    "four_on_two": {
        "zh": "代价 10、102、52、42：102 给 0 号，52 和 42 给 1 号，10 给较闲的 1 号。",
        "en": "Costs 10, 102, 52, 42: 102 to CTA 0, 52 and 42 to CTA 1, and 10 to CTA 1, which has less.",
    },
    "prefill_costs_more": {
        "zh": "query 多的一块更贵：2 × 64 + 64 = 192。",
        "en": "Many queries cost more: 2 × 64 + 64 = 192.",
    },
    "equal_costs": {
        "zh": "代价相同时按原来的顺序；一样闲时选编号小的。",
        "en": "Equal costs keep their order; equal loads go to the lower number.",
    },
}


def fixed():
    rng = Rng(b"fixed 309")
    return {
        "small_last": case([(1, 300), (1, 1), (1, 200), (1, 100), (1, 2)], 3),
        "small_first": case([(1, 1), (1, 2), (1, 3), (1, 50), (1, 60)], 2),
        "one_cta": case([(1, 5), (2, 7), (1, 9)], 1),
        "more_ctas_than_work": case([(1, 5), (1, 50)], 4),
        "no_work": case([], 3),
        "long_prefill": case([(128, 10), (1, 200), (1, 200), (1, 60)], 2),
        "queries_matter": case([(100, 0), (1, 150), (1, 149), (30, 90)], 2),
        "ties": case([(1, 20)] * 5 + [(1, 40)] * 2, 3),
        "two_alike": case([(10, 80), (1, 98), (25, 50), (50, 0)], 2),
        "empty_kv": case([(1, 0), (4, 0), (1, 6), (1, 6)], 2),
        "many": drawn(rng, 24, 5),
        "many_small": drawn(rng, 30, 8),
    }


def teach():
    return {
        "two": case([(1, 1), (1, 9)], 2),
        "three": case([(1, 1), (1, 2), (1, 9)], 2),
        "queries": case([(9, 0), (1, 10), (1, 8)], 2),
        "equal": case([(1, 4), (1, 4)], 2),
        "lopsided": case([(1, 2), (1, 2), (1, 2), (1, 20)], 2),
        "rotation": case([(1, 9), (1, 8), (1, 1), (1, 6)], 2),
    }


def generate(rng):
    return drawn(rng, rng.integer(2, 14), rng.integer(1, 6))
