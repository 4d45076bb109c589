"""Cases of problem 302: states as attention over two parts of a KV would leave them."""

import torch

from judge.core import draw
from judge.core.rng import Rng

NONE = -torch.inf


def state(rng, rows, heads, dim, level=0.0, empty=()):
    v = draw.tensor(rng, (rows, heads, dim))
    s = draw.tensor(rng, (rows, heads)) * 3 + level
    for row in empty:
        v[row], s[row] = 0.0, NONE
    return v, s


def pair(rng, rows=2, heads=2, dim=4, levels=(0.0, 0.0), empty_a=(), empty_b=()):
    v_a, s_a = state(rng, rows, heads, dim, levels[0], empty_a)
    v_b, s_b = state(rng, rows, heads, dim, levels[1], empty_b)
    return {"v_a": v_a, "s_a": s_a, "v_b": v_b, "s_b": s_b}


def tiny(v_a, s_a, v_b, s_b):
    values = {"v_a": v_a, "s_a": s_a, "v_b": v_b, "s_b": s_b}
    return {k: torch.tensor([[v]] if k[0] == "s" else [[[v]]]) for k, v in values.items()}


def public():
    return {
        "equal_weights": tiny(2.0, 3.0, 4.0, 3.0),
        "one_bit_more": tiny(3.0, 5.0, 6.0, 4.0),
        "other_is_empty": tiny(1.5, 2.0, 0.0, NONE),
        "several": pair(Rng(b"several 302"), rows=2, heads=2, dim=2),
    }


NOTES = {
    "equal_weights": {
        "zh": "两边的权重和相等：取平均，s 加 1。",
        "en": "Both parts weigh the same: the mean, and s grows by 1.",
    },
    "one_bit_more": {
        "zh": "s 大 1，权重就是两倍：(2·3 + 1·6) / 3。",
        "en": "One more in s is twice the weight: (2·3 + 1·6) / 3.",
    },
    "other_is_empty": {"zh": "另一边没有 KV：原样返回。", "en": "The other part has no KV: nothing changes."},
}


def fixed():
    rng = Rng(b"fixed 302")
    return {
        "plain": pair(rng, 3, 2, 8),
        "uneven": pair(rng, 3, 2, 4, (6.0, -6.0)),
        "large": pair(rng, 2, 2, 4, (400.0, 402.0)),
        "very_small": pair(rng, 2, 2, 4, (-400.0, -401.0)),
        "far_apart": pair(rng, 2, 1, 4, (300.0, -300.0)),
        "a_empty": pair(rng, 3, 2, 4, empty_a=(0, 2)),
        "b_empty": pair(rng, 3, 2, 4, empty_b=(1,)),
        "both_empty": pair(rng, 3, 2, 4, empty_a=(1, 2), empty_b=(1,)),
        "all_empty": pair(rng, 2, 1, 2, empty_a=(0, 1), empty_b=(0, 1)),
        "one_row": pair(rng, 1, 1, 16),
    }


def teach():
    return {
        "equal": tiny(1.0, 0.0, 3.0, 0.0),
        "one_more": tiny(0.0, 1.0, 3.0, 0.0),
        "two_less": tiny(0.0, 0.0, 5.0, -2.0),
        "large": tiny(1.0, 500.0, 3.0, 500.0),
        "empty_b": tiny(1.0, 0.0, 0.0, NONE),
        "both_empty": tiny(0.0, NONE, 0.0, NONE),
    }


def generate(rng):
    rows = rng.integer(1, 4)
    some = [r for r in range(rows) if rng.chance(1, 4)]
    other = [r for r in range(rows) if rng.chance(1, 4)]
    levels = (rng.integer(-20, 20) * 1.0, rng.integer(-20, 20) * 1.0)
    return pair(rng, rows, rng.integer(1, 3), rng.choice([1, 4, 8]), levels, some, other)


FEATURES = {
    "empty": {"zh": "有一边为空的行", "en": "a row with an empty part"},
    "both_empty": {"zh": "有两边都空的行", "en": "a row with both parts empty"},
    "large": {"zh": "有绝对值超过 100 的 s", "en": "an s beyond 100 in size"},
}


def features(inputs):
    a, b = inputs["s_a"], inputs["s_b"]
    finite = torch.cat([a.reshape(-1), b.reshape(-1)])
    finite = finite[torch.isfinite(finite)]
    return {
        "empty": bool((torch.isinf(a) | torch.isinf(b)).any()),
        "both_empty": bool((torch.isinf(a) & torch.isinf(b)).any()),
        "large": bool((finite.abs() > 100).any()),
    }
