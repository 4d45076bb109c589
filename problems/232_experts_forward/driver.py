"""Runs problem 232: the entry on the inputs, in the order of its signature."""

NAMES = ("x", "weights", "experts", "gate_up", "down")


def run(submission, inputs):
    return {"result": submission.experts_forward(*(inputs[name] for name in NAMES))}
