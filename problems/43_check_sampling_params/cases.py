"""Cases of problem 43: every border of every range, NaN and infinity."""

NAN, INF = float("nan"), float("inf")


def case(**changed):
    usual = {"temperature": 0.7, "top_k": -1, "top_p": 0.9, "min_p": 0.0, "max_tokens": 16}
    return {"params": {**usual, **changed}}


def public():
    return {
        "all_right": case(),
        "two_bad": case(temperature=-0.5, max_tokens=0),
        "nan": case(top_p=NAN),
    }


NOTES = {
    "all_right": {"zh": "没有问题。", "en": "Nothing is wrong."},
    "two_bad": {"zh": "两个键，按表的顺序。", "en": "Two keys, in the table's order."},
    "nan": {"zh": "NaN 不在任何范围里。", "en": "NaN is in no range."},
}


def fixed():
    return {
        "lower_ends": case(temperature=0.0, top_k=0, top_p=0.0, min_p=0.0, max_tokens=1),
        "upper_ends": case(temperature=2.5, top_k=1, top_p=1.0, min_p=1.0, max_tokens=1 << 40),
        "greedy": case(temperature=0.0),
        "greedy_top_k": case(temperature=0.0, top_k=1, top_p=1.0),
        "nan_temperature": case(temperature=NAN),
        "nan_everywhere": case(temperature=NAN, top_p=NAN, min_p=NAN),
        "infinite": case(temperature=INF, top_p=INF, min_p=INF),
        "minus_infinity": case(temperature=-INF, top_p=-INF, min_p=-INF),
        "negative": case(temperature=-0.001, top_k=-2, top_p=-0.1, min_p=-0.1, max_tokens=-1),
        "just_above": case(top_p=1.0000001, min_p=1.5, top_k=100000),
        "small": case(temperature=1e-6, top_p=1e-6, min_p=0.9999),
        "hot": case(temperature=30.0),
    }


def teach():
    return {
        "greedy": case(temperature=0.0),
        "top_k_zero": case(top_k=0),
        "top_p_zero": case(top_p=0.0),
        "top_p_one": case(top_p=1.0),
        "min_p_one": case(min_p=1.0),
        "nan": case(temperature=NAN),
        "infinite": case(temperature=INF),
        "top_k_one": case(top_k=1),
    }


def generate(rng):
    return case(
        temperature=rng.choice([0.0, 0.5, 1.0, -1.0, NAN, INF]),
        top_k=rng.choice([-2, -1, 0, 1, 40]),
        top_p=rng.choice([0.0, 0.5, 1.0, 1.5, NAN]),
        min_p=rng.choice([0.0, 0.1, 1.0, -0.5, NAN]),
        max_tokens=rng.choice([0, 1, 100, -5]),
    )


FEATURES = {
    "nan": {"zh": "有 NaN", "en": "some number is NaN"},
    "zero": {"zh": "temperature 或 top_p 是 0", "en": "temperature or top_p is 0"},
}


def features(inputs):
    params = inputs["params"]
    return {
        "nan": any(v != v for v in params.values()),
        "zero": 0.0 in (params["temperature"], params["top_p"]),
    }
