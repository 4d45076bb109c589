"""Runs problem 91, and looks whether `logits` is as it was."""

import torch


def run(submission, inputs):
    given = inputs["logits"]
    before = given.clone()
    result = submission.probabilities(*inputs.values())
    return {"result": result, "logits_unchanged": torch.equal(given, before)}
