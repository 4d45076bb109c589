"""Runs problem 55, and looks whether `qkv` is as it was."""

import torch


def run(submission, inputs):
    given = inputs["qkv"]
    before = given.clone()
    result = submission.split_qkv(*inputs.values())
    parts = result if isinstance(result, (tuple, list)) and len(result) == 3 else (result, None, None)
    return {**dict(zip("qkv", parts, strict=True)), "qkv_unchanged": torch.equal(given, before)}
