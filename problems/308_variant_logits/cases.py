"""Cases of problem 308."""

import torch

from judge.core import draw
from judge.core.rng import Rng


def case(scores, q_pos, kv_pos, scale=1.0, soft_cap=0.0, window_left=-1, slope=0.0):
    return {
        "scores": scores if isinstance(scores, torch.Tensor) else torch.tensor(scores, dtype=torch.float32),
        "q_pos": torch.tensor(q_pos),
        "kv_pos": torch.tensor(kv_pos),
        "scale": scale,
        "soft_cap": soft_cap,
        "window_left": window_left,
        "slope": slope,
    }


def drawn(rng, n, m, start, **options):
    """The last n of `start + n` positions, against keys from position 0, or a piece of them in another order."""
    kv = list(range(m))
    scores = draw.tensor(rng, (n, m), scale=4.0)
    return case(scores, [start + i for i in range(n)], kv, **options)


def public():
    return {
        "causal": case([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1, 2], [0, 1, 2], scale=0.5),
        "window": case([[1.0, 2.0, 3.0, 4.0]], [3], [0, 1, 2, 3], window_left=2),
        "soft_cap": case([[10.0, -10.0]], [1], [0, 1], soft_cap=2.0),
        "alibi": case([[1.0, 1.0, 1.0]], [2], [0, 1, 2], slope=0.5),
    }


NOTES = {
    "causal": {
        "zh": "位置 1 的 query 看不到位置 2。",
        "en": "A query at position 1 does not see position 2.",
    },
    "window": {"zh": "往前看 2 个，连自己共 3 个。", "en": "Two positions before its own, three with it."},
    "soft_cap": {"zh": "2·tanh(±10 / 2)，接近 ±2。", "en": "2·tanh(±10 / 2), close to ±2."},
    "alibi": {"zh": "每远一个位置减 0.5。", "en": "Half a point less for each position further away."},
}


def fixed():
    rng = Rng(b"fixed 308")
    return {
        "all_at_once": drawn(rng, 4, 12, 8, scale=0.3, soft_cap=5.0, window_left=3, slope=0.25),
        "cap_and_mask": drawn(rng, 5, 5, 0, scale=1.0, soft_cap=3.0),
        "cap_and_scale": drawn(rng, 3, 6, 3, scale=0.125, soft_cap=1.0),
        "cap_and_slope": drawn(rng, 3, 9, 6, soft_cap=4.0, slope=0.5),
        "window_0": drawn(rng, 4, 6, 2, window_left=0),
        "window_1": drawn(rng, 4, 6, 2, window_left=1),
        "window_beyond": drawn(rng, 2, 5, 3, window_left=100),
        "slope_and_scale": drawn(rng, 2, 8, 6, scale=0.25, slope=0.125),
        "scattered_keys": case(draw.tensor(rng, (2, 4)), [5, 9], [7, 2, 9, 4], window_left=4, slope=0.5),
        "sees_nothing": case(draw.tensor(rng, (1, 3)), [9], [0, 1, 2], window_left=3),
        "later_than_all": case(draw.tensor(rng, (2, 3)), [0, 4], [5, 6, 7], soft_cap=2.0),
    }


def teach():
    return {
        "scale": case([[2.0]], [0], [0], scale=0.5, soft_cap=1.0),
        "mask": case([[1.0, 2.0]], [0], [0, 1], soft_cap=1.0),
        "window": case([[1.0, 2.0]], [1], [0, 1], window_left=1),
        "own": case([[1.0, 2.0]], [1], [0, 1], window_left=0),
        "slope": case([[1.0, 2.0]], [1], [0, 1], slope=0.5),
        "slope_cap": case([[3.0, 3.0]], [1], [0, 1], soft_cap=1.0, slope=2.0),
        "slope_scale": case([[3.0, 3.0]], [1], [0, 1], scale=0.25, slope=2.0),
        "window_ahead": case([[1.0, 2.0]], [0], [0, 1], window_left=1),
    }


def generate(rng):
    n = rng.integer(1, 4)
    m = rng.integer(1, 9)
    return drawn(
        rng,
        n,
        m,
        rng.integer(0, m),
        scale=rng.choice([1.0, 0.25]),
        soft_cap=rng.choice([0.0, 3.0, 30.0]),
        window_left=rng.choice([-1, 0, 1, 3]),
        slope=rng.choice([0.0, 0.5]),
    )


FEATURES = {
    "cap": {"zh": "有软上限", "en": "there is a soft cap"},
    "window": {"zh": "有滑动窗口", "en": "there is a sliding window"},
    "slope": {"zh": "有 ALiBi", "en": "there is ALiBi"},
}


def features(inputs):
    return {"cap": inputs["soft_cap"] > 0, "window": inputs["window_left"] >= 0, "slope": inputs["slope"] > 0}
