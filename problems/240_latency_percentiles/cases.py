"""Cases of problem 240: times in multiples of 1/64 s, exact as floats."""

from judge.core.rng import Rng


def case(percents, *requests):
    return {
        "requests": [[sent, list(times)] for sent, times in requests],
        "percents": [float(p) for p in percents],
    }


def drawn(rng, percents, counts):
    """A request for each count of tokens, sent one after the other; 0 tokens: it failed."""
    requests, at = [], 0.0
    for count in counts:
        at += rng.integer(0, 64) / 64
        times, now = [], at + rng.integer(4, 200) / 64
        for _ in range(count):
            times.append(now)
            now += rng.integer(1, 20) / 64
        requests.append((at, times))
    return case(percents, *requests)


def named(name, *given):
    return drawn(Rng(f"240 {name}".encode()), *given)


def public():
    return {
        "three_requests": case(
            [50, 100], (0.0, [0.5, 0.75, 1.0]), (0.25, [1.25]), (0.5, [0.75, 1.25, 1.75, 2.25, 2.75])
        ),
        "one_failed": case([50], (0.0, []), (1.0, [1.5, 2.0])),
    }


NOTES = {
    "three_requests": {
        "zh": "第二个请求只有一个 token：有 TTFT，没有 TPOT。",
        "en": "The second request has one token: a TTFT, but no TPOT.",
    },
    "one_failed": {"zh": "失败的请求不算。", "en": "The request that failed doesn't count."},
}


def fixed():
    return {
        "between_values": named("f1", [50, 90, 99], [3, 5, 2, 7]),
        "ends": named("f2", [0, 100], [4, 2, 6]),
        "one_request": named("f3", [50, 99], [5]),
        "one_token_answers": named("f4", [50, 90], [1, 1, 1]),
        "mixed": named("f5", [25, 50, 75], [1, 4, 0, 2, 1, 9]),
        "all_failed": named("f6", [50], [0, 0]),
        "nobody": case([50, 90]),
        "one_long_answer": named("f7", [50, 90], [40, 2, 2, 3]),
        "two_tokens": named("f8", [50, 95], [2, 2, 2, 2]),
        "odd_order": named("f9", [99, 1, 50], [3, 8, 5, 4, 6]),
    }


def teach():
    return {
        "two_tokens": case([50], (0.0, [1.0, 1.5])),
        "late_start": case([50], (1.0, [2.0, 2.5])),
        "one_token": case([50], (0.0, [1.0])),
        "three_tokens": case([50], (0.0, [1.0, 1.25, 2.0])),
        "two_requests": case([50], (0.0, [1.0, 1.5]), (0.0, [2.0, 3.0])),
        "failed": case([50], (0.0, []), (0.0, [1.0, 1.5])),
        "uneven": case([50], (0.0, [1.0, 2.0]), (0.0, [1.0, 1.25, 1.5])),
    }


def generate(rng):
    percents = rng.sample([0, 10, 50, 75, 90, 99, 100], rng.integer(1, 3))
    counts = [rng.choice([0, 1, 1, rng.integer(2, 12), rng.integer(2, 12)]) for _ in range(rng.integer(1, 7))]
    return drawn(rng, percents, counts)


FEATURES = {
    "one_token": {"zh": "有只有一个 token 的回答", "en": "an answer has one token"},
    "failed": {"zh": "有失败的请求", "en": "a request failed"},
    "several": {"zh": "不止一个请求", "en": "there are several requests"},
}


def features(inputs):
    counts = [len(times) for _, times in inputs["requests"]]
    return {"one_token": 1 in counts, "failed": 0 in counts, "several": len(counts) > 1}
