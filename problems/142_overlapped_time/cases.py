"""Cases of problem 142: the GPU is the slower one, the CPU is, and both in turn."""


def case(prepare, forward, process):
    return {"prepare": list(prepare), "forward": list(forward), "process": list(process)}


def public():
    return {
        "gpu_bound": case([3, 3, 3], [10, 10, 10], [2, 2, 2]),
        "cpu_bound": case([6, 6, 6], [4, 4, 4], [3, 3, 3]),
        "one": case([5], [20], [4]),
    }


NOTES = {
    "gpu_bound": {
        "zh": "GPU 更慢：CPU 的活都藏在它后面。",
        "en": "The GPU is slower, and hides the CPU's work.",
    },
    "cpu_bound": {
        "zh": "CPU 更慢：GPU 每批之后都要等。",
        "en": "The CPU is slower: the GPU waits after every batch.",
    },
    "one": {"zh": "只有一批，没有可重叠的。", "en": "One batch: there is nothing to overlap."},
}


def fixed():
    return {
        "nothing": case([], [], []),
        "two": case([4, 2], [7, 9], [3, 5]),
        "long_last_process": case([1, 1], [5, 5], [1, 20]),
        "long_first_prepare": case([30, 1, 1], [5, 5, 5], [1, 1, 1]),
        "long_process_in_the_middle": case([2, 2, 2], [10, 10, 10], [1, 25, 1]),
        "prefill_then_decode": case([5, 2, 2, 2], [80, 9, 9, 9], [3, 3, 3, 3]),
        "decode_then_prefill": case([2, 2, 5], [9, 9, 80], [3, 3, 3]),
        "cpu_slow_once": case([2, 40, 2, 2], [10, 10, 10, 10], [1, 1, 1, 1]),
        "equal": case([5, 5, 5, 5], [5, 5, 5, 5], [5, 5, 5, 5]),
        "no_process": case([3, 4, 5], [6, 6, 6], [0, 0, 0]),
        "instant_gpu": case([3, 4, 5], [1, 1, 1], [2, 2, 2]),
    }


def teach():
    return {
        "one": case([1], [2], [1]),
        "two_gpu": case([1, 1], [5, 5], [1, 1]),
        "two_cpu": case([5, 5], [1, 1], [1, 1]),
        "three_gpu": case([1, 1, 1], [4, 4, 4], [1, 1, 1]),
        "long_process": case([1, 1, 1], [2, 2, 2], [6, 1, 1]),
        "last_process": case([1, 1], [2, 2], [1, 9]),
    }


def generate(rng):
    count = rng.integer(1, 7)
    slow = rng.choice([5, 20, 60])
    return case(
        [rng.integer(1, 12) for _ in range(count)],
        [rng.integer(1, slow) for _ in range(count)],
        [rng.integer(0, 9) for _ in range(count)],
    )


FEATURES = {
    "several": {"zh": "不止一批", "en": "there is more than one batch"},
    "cpu": {"zh": "CPU 的活比 GPU 的多", "en": "the CPU has more to do than the GPU"},
}


def features(inputs):
    return {
        "several": len(inputs["forward"]) > 1,
        "cpu": sum(inputs["prepare"]) + sum(inputs["process"]) > sum(inputs["forward"]),
    }
