"""Cases of problem 231: what routers choose, crowded and sparse."""

from judge.core.rng import Rng


def case(experts, num_experts, block):
    return {"experts": [list(row) for row in experts], "num_experts": num_experts, "block": block}


def drawn(rng, tokens, top_k, num_experts, block, among=None):
    pool = range(num_experts) if among is None else among
    return case([rng.sample(pool, top_k) for _ in range(tokens)], num_experts, block)


def named(name, *given, **more):
    return drawn(Rng(f"231 {name}".encode()), *given, **more)


def public():
    return {
        "two_choices": case([[2, 0], [2, 1]], 3, 2),
        "unchosen": case([[3], [3], [3]], 4, 2),
    }


NOTES = {
    "two_choices": {"zh": "编号 0 到 3，补的是 4。", "en": "Numbers 0 to 3; what is filled in is 4."},
    "unchosen": {"zh": "专家 0、1、2 没人选，不占块。", "en": "Experts 0, 1 and 2 are nobody's: no block."},
}


def fixed():
    return {
        "block_one": named("f1", 4, 2, 4, 1),
        "block_four": named("f2", 6, 2, 4, 4),
        "exact_blocks": case([[1], [0], [1], [0]], 2, 2),
        "one_above": case([[0], [0], [0], [1], [1]], 2, 2),
        "crowded": named("f3", 9, 2, 8, 4, among=[5, 2]),
        "sparse": named("f4", 2, 2, 16, 4),
        "eight_choices": named("f5", 3, 8, 12, 4),
        "one_token": case([[2, 1]], 4, 3),
        "no_token": case([], 4, 2),
        "sixteen": named("f6", 20, 2, 4, 16),
        "last_only": case([[3, 0], [3, 0]], 4, 2),
    }


def teach():
    return {
        "one": case([[0]], 1, 1),
        "filled": case([[0]], 1, 2),
        "second": case([[1]], 2, 1),
        "two_experts": case([[1], [0]], 2, 1),
        "two_choices": case([[1, 0]], 2, 2),
        "two_blocks": case([[0], [0], [0]], 1, 2),
        "exact": case([[0], [0]], 1, 2),
    }


def generate(rng):
    num_experts = rng.integer(2, 8)
    top_k = rng.integer(1, min(3, num_experts))
    return drawn(rng, rng.integer(1, 10), top_k, num_experts, rng.choice([1, 2, 4]))


FEATURES = {
    "unchosen": {"zh": "有没人选的专家", "en": "an expert is nobody's"},
    "filled": {"zh": "有要补齐的专家", "en": "some expert's share is filled up"},
}


def features(inputs):
    flat = [e for row in inputs["experts"] for e in row]
    return {
        "unchosen": len(set(flat)) < inputs["num_experts"],
        "filled": any(flat.count(e) % inputs["block"] for e in set(flat)),
    }
