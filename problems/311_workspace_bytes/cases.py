"""Cases of problem 311."""

from judge.core.rng import Rng


def case(batches, num_qo_heads=8, tile=16, head_dim=128, capacity=1 << 20):
    return {
        "batches": [list(b) for b in batches],
        "num_qo_heads": num_qo_heads,
        "tile": tile,
        "head_dim": head_dim,
        "capacity": capacity,
    }


def size(chunks, num_qo_heads=8, tile=16, head_dim=128):
    """Bytes of tmp_v."""
    return num_qo_heads * sum(chunks) * tile * head_dim * 4


def public():
    return {
        "two_batches": case([[1, 1, 1], [4, 1, 2]]),
        "too_small": case([[8, 8, 4]], capacity=1 << 20),
        "only_the_lse_fails": case([[2]], capacity=size([2]) + 100),
    }


NOTES = {
    "two_batches": {
        "zh": "第一批谁也没切，什么也不要。",
        "en": "Nobody is cut in the first batch: it needs nothing.",
    },
    "too_small": {
        "zh": "20 块要 1,310,720 字节的 tmp_v，放不进 1 MB。",
        "en": "20 chunks want a tmp_v of 1,310,720 bytes, more than 1 MB.",
    },
    "only_the_lse_fails": {
        "zh": "tmp_v 放下了，剩下的 100 字节放不下 tmp_s。",
        "en": "tmp_v fits, and the 100 bytes left are too few for tmp_s.",
    },
}


def fixed():
    rng = Rng(b"fixed 311")
    exact = size([3, 1]) + size([3, 1], head_dim=1)
    return {
        "never_cut": case([[1], [1] * 40, [1, 1]]),
        "one_cut": case([[1, 1, 1, 2]]),
        "fits_exactly": case([[3, 1]], capacity=exact),
        "one_byte_short": case([[3, 1]], capacity=exact - 1),
        "tmp_v_fits_exactly": case([[3, 1]], capacity=size([3, 1])),
        "tmp_v_one_byte_short": case([[3, 1]], capacity=size([3, 1]) - 1),
        "large_tile": case([[2, 2], [1]], tile=128, capacity=3 << 20),
        "head_dim_64": case([[5, 1, 1]], head_dim=64, capacity=400_000),
        "many_heads": case([[2, 1], [3, 3]], num_qo_heads=32, capacity=2 << 20),
        "later_batch_fails": case([[2], [40, 40], [1] * 99, [3]], capacity=4 << 20),
        "nothing_there": case([[1, 1], [2]], capacity=0),
        "drawn": case([[rng.integer(1, 6) for _ in range(5)] for _ in range(4)]),
    }


def teach():
    return {
        "not_cut": case([[1]], 1, 16, 1, 1000),
        "cut": case([[2]], 1, 16, 1, 1000),
        "cut_and_not": case([[2, 1]], 1, 16, 2, 1000),
        "too_small": case([[2]], 1, 16, 2, 100),
        "lse": case([[2]], 1, 16, 2, 300),
        "heads": case([[2]], 2, 16, 1, 1000),
        "two_batches": case([[2], [2]], 1, 16, 1, 300),
        "just_full": case([[2]], 1, 16, 1, 256),
    }


def generate(rng):
    batches = [
        [1 if rng.chance(1, 2) else rng.integer(1, 9) for _ in range(rng.integer(1, 8))]
        for _ in range(rng.integer(1, 4))
    ]
    return case(
        batches,
        rng.choice([4, 8, 32]),
        rng.choice([16, 64, 128]),
        rng.choice([64, 128]),
        rng.integer(0, 8 << 20),
    )


FEATURES = {
    "cut": {"zh": "有切了的批", "en": "some batch is cut"},
    "uncut": {"zh": "有没切的批", "en": "some batch is not cut"},
}


def features(inputs):
    cut = [any(c > 1 for c in batch) for batch in inputs["batches"]]
    return {"cut": any(cut), "uncut": not all(cut)}
