"""Cases of problem 221: the ways in which kernels walk through memory."""


def case(access_bytes, *warps):
    return {"addresses": [list(w) for w in warps], "access_bytes": access_bytes}


def run(start, stride, threads=32):
    return [start + stride * i for i in range(threads)]


def public():
    return {
        "next_to_each_other": case(4, run(0, 4, 16), run(0, 64, 4)),
        "across_a_border": case(8, [28, 64, None]),
    }


NOTES = {
    "next_to_each_other": {
        "zh": "16 个线程挨着读是 2 个扇区；4 个线程散开读是 4 个。",
        "en": "16 threads side by side: 2 sectors; 4 threads far apart: 4.",
    },
    "across_a_border": {
        "zh": "第一个线程跨了两个扇区。",
        "en": "The first thread's access lies in two sectors.",
    },
}


def fixed():
    return {
        "coalesced": case(4, run(1024, 4)),
        "vectors": case(16, run(0, 16)),
        "misaligned": case(4, run(1032, 4)),
        "misaligned_by_two": case(4, run(30, 4)),
        "stride_of_a_head": case(2, run(0, 256)),
        "broadcast": case(4, [4096] * 32),
        "every_other": case(4, run(0, 8)),
        "backwards": case(4, run(2000, -4)),
        "same_for_two_warps": case(4, run(0, 4), run(0, 4), run(64, 4)),
        "masked": case(4, run(0, 4, 20) + [None] * 12, [None] * 32),
        "two_rows": case(8, run(0, 8, 16) + run(4096, 8, 16)),
        "bytes": case(1, run(31, 1)),
        "all_across": case(16, run(24, 64, 8)),
    }


def teach():
    return {
        "one": case(4, [0]),
        "two_in_one": case(4, [0, 4]),
        "two_sectors": case(4, [0, 32]),
        "same": case(4, [8, 8]),
        "across": case(8, [28]),
        "far": case(4, [0, 96]),
        "two_warps": case(4, [0], [0]),
        "masked": case(4, [None, 64]),
        "one_byte": case(1, [31, 32]),
    }


def generate(rng):
    access_bytes = rng.choice([1, 2, 4, 8, 16])
    warps = []
    for _ in range(rng.integer(1, 3)):
        stride = rng.choice([access_bytes, access_bytes, 2 * access_bytes, 12, 128])
        addresses = run(rng.below(200), stride, rng.choice([8, 16, 32]))
        warps.append([None if rng.chance(1, 12) else a for a in addresses])
    return case(access_bytes, *warps)


FEATURES = {
    "warps": {"zh": "不止一个 warp", "en": "there is more than one warp"},
    "masked": {"zh": "有线程不参与", "en": "a thread takes no part"},
}


def features(inputs):
    return {
        "warps": len(inputs["addresses"]) > 1,
        "masked": any(a is None for warp in inputs["addresses"] for a in warp),
    }
