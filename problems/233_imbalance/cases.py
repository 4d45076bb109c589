"""Cases of problem 233: even and uneven choices."""

from judge.core.rng import Rng


def case(experts, num_experts, ranks):
    return {"experts": [list(row) for row in experts], "num_experts": num_experts, "ranks": ranks}


def drawn(rng, tokens, top_k, num_experts, ranks, among=None):
    pool = range(num_experts) if among is None else among
    return case([rng.sample(pool, top_k) for _ in range(tokens)], num_experts, ranks)


def named(name, *given, **more):
    return drawn(Rng(f"233 {name}".encode()), *given, **more)


def public():
    return {
        "one_is_busy": case([[0, 1], [1, 3], [0, 1]], 4, 2),
        "even": case([[0], [1], [2], [3]], 4, 4),
    }


NOTES = {
    "one_is_busy": {
        "zh": "6 份活，卡 0 有 5 份，平均 3 份。",
        "en": "6 pieces of work: GPU 0 has 5, the mean is 3.",
    },
    "even": {"zh": "完全均匀：1.0。", "en": "Perfectly even: 1.0."},
}


def fixed():
    return {
        "idle_gpu": case([[0, 1], [2, 0], [1, 2]], 8, 4),
        "all_on_one": named("f1", 6, 2, 8, 4, among=[6, 7]),
        "one_gpu": named("f2", 5, 2, 4, 1),
        "expert_each": named("f3", 7, 2, 4, 4),
        "many": named("f4", 30, 4, 16, 4),
        "last_gpu": case([[3], [3], [2]], 4, 2),
        "no_token": case([], 4, 2),
        "one_token": case([[2, 5, 1]], 6, 3),
        "alternating": case([[0], [2], [0], [2], [1]], 4, 2),
    }


def teach():
    return {
        "one": case([[0]], 1, 1),
        "idle": case([[0]], 2, 2),
        "two_choices": case([[0, 1]], 2, 2),
        "stretch": case([[0], [1]], 4, 2),
        "uneven": case([[0], [0], [1]], 2, 2),
        "none": case([], 2, 2),
    }


def generate(rng):
    ranks = rng.choice([1, 2, 4])
    num_experts = ranks * rng.integer(1, 4)
    return drawn(rng, rng.integer(1, 20), rng.integer(1, min(3, num_experts)), num_experts, ranks)


FEATURES = {
    "idle": {"zh": "有闲着的卡", "en": "a GPU is idle"},
    "several": {"zh": "不止一张卡", "en": "there are several GPUs"},
}


def features(inputs):
    share = inputs["num_experts"] // inputs["ranks"]
    busy = {e // share for row in inputs["experts"] for e in row}
    return {"idle": len(busy) < inputs["ranks"], "several": inputs["ranks"] > 1}
