"""Cases of problem 243: uniform numbers are multiples of 1/64."""

from judge.core.rng import Rng


def case(rate, *sixty_fourths):
    return {"rate": None if rate is None else float(rate), "uniforms": [n / 64 for n in sixty_fourths]}


def drawn(rng, rate, count):
    return case(rate, *(rng.below(64) for _ in range(count)))


def public():
    return {"two_gaps": case(2, 32, 48), "all_at_once": case(None, 10, 50, 30)}


NOTES = {
    "two_gaps": {
        "zh": "ln 2 / 2 = 0.3466 秒，再过 ln 4 / 2 = 0.6931 秒。",
        "en": "ln 2 / 2 = 0.3466 s, and ln 4 / 2 = 0.6931 s after that.",
    },
    "all_at_once": {"zh": "一起来。", "en": "All at once."},
}


def fixed():
    return {
        "one_gap": case(1, 40),
        "no_gap": case(3),
        "zero": case(4, 0, 20, 0),
        "slow": case(0.25, 16, 60),
        "fast": case(100, 16, 60, 3),
        "largest": case(1, 63, 1),
        "equal": case(2, 32, 32, 32),
        "many": drawn(Rng(b"243 many"), 8, 20),
        "once_and_alone": case(None),
        "crowd": case(None, 20, 40, 5),
    }


def teach():
    return {
        "none": case(1),
        "one": case(1, 32),
        "rate_two": case(2, 32),
        "two": case(1, 32, 32),
        "quarter": case(1, 16),
        "at_once": case(None, 32),
    }


def generate(rng):
    return drawn(rng, rng.choice([None, 0.5, 1, 4, 20]), rng.integer(1, 10))


FEATURES = {
    "several": {"zh": "不止一个间隔", "en": "there are several gaps"},
    "at_once": {"zh": "一起来", "en": "all come at once"},
}


def features(inputs):
    return {"several": len(inputs["uniforms"]) > 1, "at_once": inputs["rate"] is None}
