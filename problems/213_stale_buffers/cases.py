"""Cases of problem 213: buffers that are right, and such as one step forgot."""

from judge.core import draw
from judge.core.rng import Rng

NAMES = ("ids", "out_loc", "positions", "seq_lens")


def case(padding, **rows):
    """rows: name -> (what the buffer has, what the batch has)."""
    return {
        "buffers": {name: draw.i32(now) for name, (now, _) in rows.items()},
        "batch": {name: draw.i32(wanted) for name, (_, wanted) in rows.items()},
        "padding": dict(padding),
    }


def drawn(rng, size, count):
    padding = {"out_loc": rng.integer(0, 3), "seq_lens": 1}
    rows = {}
    for name in NAMES:
        wanted = [rng.integer(0, 9) for _ in range(count)]
        rest = [padding.get(name, rng.integer(0, 9)) for _ in range(size - count)]
        now = wanted + rest
        fault = rng.below(6)
        if fault == 0:
            now[rng.below(count)] += 1
        elif fault == 1 and rest:
            now[count + rng.below(len(rest))] += 1
        elif fault == 2 and count > 1:
            now[:count] = now[1:count] + now[:1]
        rows[name] = (now, wanted)
    return case(padding, **rows)


def public():
    return {
        "out_loc_tail": case(
            {"out_loc": 7, "seq_lens": 1},
            ids=([5, 9, 4], [5]),
            out_loc=([3, 2, 7], [3]),
            seq_lens=([6, 1, 1], [6]),
        ),
        "all_right": case({"out_loc": 0}, ids=([1, 2, 8], [1, 2]), out_loc=([4, 5, 0], [4, 5])),
    }


NOTES = {
    "out_loc_tail": {
        "zh": "out_loc 的第 1 行还指着 2 号格；ids 的后两行是旧的，但无所谓。",
        "en": "Row 1 of out_loc still has slot 2; the last rows of ids are old, which doesn't matter.",
    },
    "all_right": {"zh": "都对。", "en": "All is right."},
}


def fixed():
    return {
        "positions_forgotten": case({}, ids=([4, 5], [4, 5]), positions=([0, 0], [7, 8])),
        "last_real_row": case({}, ids=([4, 5, 6, 0], [4, 5, 9])),
        "first_row_only_right": case({}, ids=([4, 0], [4, 5]), positions=([1, 2], [1, 2])),
        "permuted": case({}, ids=([5, 4], [4, 5]), positions=([3, 3], [3, 3])),
        "padding_of_zero": case({"out_loc": 0}, out_loc=([3, 9], [3]), ids=([1, 9], [1])),
        "padding_kept": case({"seq_lens": 1}, seq_lens=([5, 1, 1], [5]), ids=([2, 9, 9], [2])),
        "last_padded_row": case({"seq_lens": 1}, seq_lens=([5, 1, 0], [5])),
        "no_padding_needed": case({"out_loc": 9}, out_loc=([1, 2], [1, 2]), ids=([3, 3], [3, 4])),
        "several": case(
            {"out_loc": 4}, seq_lens=([1, 1], [2, 2]), out_loc=([0, 5], [0]), ids=([1, 1], [2, 2])
        ),
        "order": case({}, zeta=([1], [2]), alpha=([1], [2]), mid=([1], [1])),
        "same_sum": case({}, ids=([1, 4], [2, 3])),
        "drawn": drawn(Rng(b"213 drawn"), 6, 4),
    }


def teach():
    return {
        "right": case({}, ids=([1], [1])),
        "wrong": case({}, ids=([1], [2])),
        "any_rest": case({}, ids=([1, 5], [1])),
        "rest": case({"ids": 3}, ids=([1, 5], [1])),
        "rest_right": case({"ids": 3}, ids=([1, 3], [1])),
        "rest_zero": case({"ids": 0}, ids=([1, 5], [1])),
        "second_row": case({}, ids=([1, 5], [1, 2])),
        "swapped": case({}, ids=([2, 1], [1, 2])),
        "order": case({}, b=([1], [2]), a=([1], [2])),
    }


def generate(rng):
    size = rng.integer(2, 6)
    return drawn(rng, size, rng.integer(1, size))


FEATURES = {
    "padded": {"zh": "这一批比缓冲区短", "en": "the batch is shorter than the buffers"},
    "several": {"zh": "不止一个缓冲区", "en": "there are several buffers"},
}


def features(inputs):
    return {
        "padded": any(len(b) > len(inputs["batch"][n]) for n, b in inputs["buffers"].items()),
        "several": len(inputs["buffers"]) > 1,
    }
