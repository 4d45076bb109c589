"""Runs problem 53, and looks whether `x` is as it was."""

import torch


def run(submission, inputs):
    given = inputs["x"]
    before = given.clone()
    result = submission.rotate(*inputs.values())
    return {"result": result, "x_unchanged": torch.equal(given, before)}
