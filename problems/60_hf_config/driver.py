"""Runs problem 60: each key of the returned dict is an output of its own, so that mistakes are told apart by key."""

import copy


def run(submission, inputs):
    raw = copy.deepcopy(inputs["raw"])
    found = submission.read_config(raw)
    return {**dict(found), "raw_unchanged": raw == inputs["raw"]}
