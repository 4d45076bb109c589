"""Cases of problem 182: every fault, before and after the first byte."""

FAULTS = ["bad_field", "too_long", "no_model", "queue_full", "bug", "engine_died", "timed_out", "client_gone"]
PUBLIC = {"no_answer": ("timed_out", False), "died_in_stream": ("engine_died", True)}


def case(fault, started):
    return {"fault": fault, "started": started}


def public():
    return {name: case(*given) for name, given in PUBLIC.items()}


NOTES = {
    "no_answer": {"zh": "还没开始：504。", "en": "Not started: 504."},
    "died_in_stream": {
        "zh": "已经在流了：状态仍是 200，错误作为事件发出。",
        "en": "In the stream: the status stays 200, and the fault is an event.",
    },
}


def fixed():
    every = [(fault, started) for fault in FAULTS for started in (False, True)]
    return {
        f"{f}_{'in_stream' if s else 'first'}": case(f, s) for f, s in every if (f, s) not in PUBLIC.values()
    }


def teach():
    return {f"{f}_{'in_stream' if s else 'first'}": case(f, s) for f in FAULTS for s in (False, True)}


def generate(rng):
    return case(rng.choice(FAULTS), rng.chance(1, 2))


FEATURES = {
    "started": {"zh": "已经开始发了", "en": "the answer has started"},
    "gone": {"zh": "客户端已经走了", "en": "the client is gone"},
}


def features(inputs):
    return {"started": inputs["started"], "gone": inputs["fault"] == "client_gone"}
