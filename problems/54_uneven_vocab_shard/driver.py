"""Runs problem 54, and looks whether `ids` is as it was."""

import torch


def run(submission, inputs):
    given = inputs["ids"]
    before = given.clone()
    result = submission.partial_embedding(*inputs.values())
    return {"result": result, "ids_unchanged": torch.equal(given, before)}
