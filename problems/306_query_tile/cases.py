"""Cases of problem 306."""

from judge.core.rng import Rng


def case(qo_lens, num_qo_heads=8, num_kv_heads=2, head_dim=128):
    return {
        "qo_lens": list(qo_lens),
        "num_qo_heads": num_qo_heads,
        "num_kv_heads": num_kv_heads,
        "head_dim": head_dim,
    }


def public():
    return {
        "decode": case([1, 1, 1], 32, 8),
        "short_prefill": case([5, 7, 12]),
        "long_prefill": case([300, 17]),
        "without_groups": case([5, 7, 12], 8, 8),
    }


NOTES = {
    "decode": {"zh": "每个请求打包成 4 行：块 16。", "en": "Each request packs into 4 rows: tiles of 16."},
    "short_prefill": {
        "zh": "打包成 20、28、48 行，平均 32：块 64。",
        "en": "Packed into 20, 28 and 48 rows, 32 on average: tiles of 64.",
    },
    "without_groups": {
        "zh": "同样的长度，没有 GQA：平均 8，块 16。",
        "en": "The same lengths without GQA: 8 on average, tiles of 16.",
    },
}


def fixed():
    rng = Rng(b"fixed 306")
    return {
        "average_64": case([16, 16]),
        "average_65": case([65, 65], 4, 4),
        "average_16": case([4, 4, 4]),
        "average_17": case([17, 17], 4, 4),
        "floors_to_64": case([64, 65], 4, 4),
        "floors_to_16": case([16, 17, 17], 4, 4),
        "head_dim_256": case([200, 90], 8, 2, 256),
        "one_long_many_short": case([250, 1, 1, 1, 1, 1, 1, 1]),
        "empty_request": case([0, 40, 0, 7]),
        "all_decode_large_group": case([1] * 6, 32, 1),
        "tile_borders": case([32, 33, 64, 128], 4, 1),
        "drawn": case([rng.integer(0, 90) for _ in range(7)], 16, 4, 64),
    }


def teach():
    return {
        "one": case([1], 1, 1),
        "group": case([5], 4, 1),
        "average": case([30, 1], 1, 1),
        "large": case([65], 1, 1),
        "large_head": case([65], 1, 1, 256),
        "uneven": case([17, 1, 1], 1, 1),
        "ragged": case([20, 14], 1, 1),
        "exactly_16": case([16], 1, 1),
        "empty_request": case([0, 17], 1, 1),
        "tiles_of_a_group": case([40], 4, 1),
    }


def generate(rng):
    kv = rng.choice([1, 2, 8])
    lens = [
        0 if rng.chance(1, 8) else rng.integer(1, rng.choice([2, 20, 120])) for _ in range(rng.integer(1, 7))
    ]
    if not any(lens):
        lens[0] = 1
    return case(lens, kv * rng.choice([1, 2, 4, 8]), kv, rng.choice([64, 128, 256]))
