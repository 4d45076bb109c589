"""Rules of merged states (problem 302)."""

import torch


def check(inputs, got, want):
    """Nothing beside the comparison with the reference."""
    return []


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    if torch.isnan(got["v"]).any() or torch.isnan(got["s"]).any():
        yield {"zh": "合并的结果不应有 NaN", "en": "a merged state has no NaN"}
    if (got["s"] < torch.maximum(inputs["s_a"], inputs["s_b"]) - 1e-4).any():
        yield {
            "zh": "合并后的 s 不会比两个 s 中大的那个小",
            "en": "the merged s is never below the larger of the two",
        }
