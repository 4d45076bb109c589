"""Cases of problem 241: times in multiples of 1/64 s, exact as floats."""


def case(wall, ttft_limit, tpot_limit, *requests):
    return {
        "requests": [list(r) for r in requests],
        "wall": float(wall),
        "ttft_limit": float(ttft_limit),
        "tpot_limit": float(tpot_limit),
    }


def public():
    return {
        "one_too_late": case(2, 0.5, 0.25, (0.25, 0.75, 3), (0.75, 1.0, 3), (0.5, 0.75, 2)),
        "one_token": case(4, 1, 0.125, (0.5, 0.5, 1), (1.5, 1.5, 1)),
    }


NOTES = {
    "one_too_late": {
        "zh": "第二个太晚；第三个两项都正好卡在上限，算守约。2 个 / 2 秒。",
        "en": "The second is late; the third is exactly at both limits, which is kept. 2 in 2 seconds.",
    },
    "one_token": {"zh": "一个 token 的回答只看 TTFT。", "en": "For answers of one token only TTFT matters."},
}


def fixed():
    return {
        "slow_after_a_quick_start": case(2, 0.5, 0.25, (0.25, 2.25, 5), (0.25, 1.25, 5), (0.25, 1.5, 5)),
        "long_answer": case(8, 0.5, 0.25, (0.5, 8.0, 40), (0.25, 3.0, 3)),
        "failed": case(2, 1, 1, (0.0, 0.0, 0), (0.5, 1.0, 2), (0.0, 0.0, 0)),
        "all_kept": case(4, 1, 1, (0.5, 1.5, 3), (0.75, 1.25, 2), (1.0, 1.0, 1)),
        "none_kept": case(4, 0.125, 0.125, (0.5, 1.5, 3), (0.75, 1.25, 2)),
        "nobody": case(3, 1, 1),
        "at_the_limits": case(1, 0.5, 0.25, (0.5, 0.75, 2), (0.5, 0.515625, 2)),
        "one_token_strict": case(2, 1, 0, (0.5, 0.5, 1), (0.25, 0.5, 2)),
        "mean_is_fine": case(1, 0.5, 0.5, (0.125, 0.25, 2), (0.75, 1.0, 2), (0.125, 0.375, 2)),
        "half_a_second": case(0.5, 1, 1, (0.25, 0.5, 2), (0.25, 0.375, 2), (2.0, 2.5, 3)),
        "between_n_and_n_less_one": case(1, 1, 0.25, (0.5, 1.0625, 3), (0.5, 1.0, 3)),
    }


def teach():
    return {
        "kept": case(2, 1, 1, (0.5, 1.0, 2)),
        "late": case(2, 0.25, 1, (0.5, 1.0, 2)),
        "slow": case(2, 1, 0.25, (0.5, 1.0, 2)),
        "exact": case(2, 0.5, 0.5, (0.5, 1.0, 2)),
        "one_token": case(2, 1, 1, (0.5, 0.5, 1)),
        "failed": case(2, 1, 1, (0.0, 0.0, 0)),
        "two": case(2, 0.5, 1, (0.25, 1.0, 2), (0.75, 1.0, 2)),
        "three_tokens": case(1, 1, 0.25, (0.5, 1.0625, 3)),
    }


def generate(rng):
    requests = []
    for _ in range(rng.integer(1, 8)):
        tokens = rng.choice([0, 1, rng.integer(2, 9), rng.integer(2, 9)])
        ttft = rng.integer(1, 96) / 64 if tokens else 0.0
        gaps = max(0, tokens - 1) * rng.integer(1, 32) / 64
        requests.append((ttft, ttft + gaps, tokens))
    return case(rng.integer(1, 16) / 2, rng.integer(16, 80) / 64, rng.integer(4, 28) / 64, *requests)


FEATURES = {
    "one_token": {"zh": "有只有一个 token 的回答", "en": "an answer has one token"},
    "failed": {"zh": "有失败的请求", "en": "a request failed"},
}


def features(inputs):
    counts = [tokens for _, _, tokens in inputs["requests"]]
    return {"one_token": 1 in counts, "failed": 0 in counts}
