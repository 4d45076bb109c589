"""Rules of the calls in problem 202."""


def check(inputs, got, want):
    """Nothing beside the comparison with the reference: outputs and calls say all."""
    return []


def invariants(inputs, got):
    """Rules that every right sequence of calls keeps, and this one breaks."""
    calls = got["calls"]
    plans, batches = calls.count("plan"), len(inputs["batches"])
    if plans > batches:
        yield {"zh": "plan 的次数比批数多", "en": "there are more plans than batches"}
    if plans < batches:
        yield {"zh": "plan 的次数比批数少", "en": "there are fewer plans than batches"}
    if len(calls) - plans != batches * inputs["layers"]:
        yield {"zh": "每批每层应正好 run 一次", "en": "each batch runs exactly once a layer"}
