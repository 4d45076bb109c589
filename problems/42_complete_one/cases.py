"""Cases of problem 42: requests and the order in which forwards end and tokens reach the CPU: at once, or one step later
as under overlap scheduling."""

from itertools import pairwise


def case(prompt_len, cached_len, output_len, events):
    """`events`: F for the end of a forward, a for a token that arrives."""
    names = {"F": "forward", "a": "append"}
    return {
        "prompt_len": prompt_len,
        "cached_len": cached_len,
        "output_len": output_len,
        "events": [names[e] for e in events],
    }


def public():
    return {
        "prefill_then_decodes": case(5, 3, 3, "FaFaFa"),
        "tokens_come_late": case(4, 0, 3, "FFaFaa"),
    }


NOTES = {
    "prefill_then_decodes": {
        "zh": "每个 token 都在下一次 forward 之前到。",
        "en": "Each token arrives before the next forward.",
    },
    "tokens_come_late": {
        "zh": "重叠调度：第一个 token 到之前，下一次 forward 已经发出。",
        "en": "Overlapped: the next forward is launched before the first token has come.",
    },
}


def fixed():
    return {
        "one_forward": case(6, 0, 1, "F"),
        "one_output": case(3, 2, 1, "Fa"),
        "one_token_prompt": case(1, 0, 4, "FaFaFaFa"),
        "long_prefill": case(300, 0, 3, "FaFa"),
        "hit": case(40, 32, 4, "FaFaFa"),
        "one_late": case(7, 3, 6, "FFaFaFaFaFaa"),
        "two_late": case(7, 3, 5, "FFFaFaFaaa"),
        "never_arrive": case(5, 1, 4, "FFFF"),
        "nothing_happens": case(5, 1, 4, ""),
    }


def teach():
    return {
        "one": case(1, 0, 2, "F"),
        "two_tokens": case(2, 0, 2, "F"),
        "hit": case(3, 1, 2, "F"),
        "decode": case(1, 0, 2, "FaF"),
        "late": case(1, 0, 3, "FF"),
        "late_then_there": case(2, 0, 3, "FFaFa"),
    }


def generate(rng):
    prompt_len = rng.integer(1, 30)
    output_len = rng.integer(1, 8)
    late = rng.integer(0, 2)
    forwards = rng.integer(1, output_len)
    events = "F" * min(late, forwards) + "Fa" * max(0, forwards - late) + "a" * min(late, forwards)
    return case(prompt_len, rng.below(prompt_len), output_len, events)


FEATURES = {
    "late": {
        "zh": "有两次 forward 之间没有新 token 到达",
        "en": "two forwards end with no token arriving between them",
    },
    "cached": {"zh": "开始时有命中", "en": "a prefix is cached"},
}


def features(inputs):
    events = inputs["events"]
    return {
        "late": any(a == b == "forward" for a, b in pairwise(events)),
        "cached": inputs["cached_len"] > 0,
    }
