"""Runs problem 52, and looks whether the input is as it was."""


def run(submission, inputs):
    x = inputs["x"]
    before = x.clone()
    result = submission.silu_and_mul(x)
    return {"result": result, "x_unchanged": bool((x == before).all())}
