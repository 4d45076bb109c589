"""Runs problem 92, and looks whether `probs` is as it was."""

import torch


def run(submission, inputs):
    given = inputs["probs"]
    before = given.clone()
    result = submission.min_p_filter(*inputs.values())
    return {"result": result, "probs_unchanged": torch.equal(given, before)}
