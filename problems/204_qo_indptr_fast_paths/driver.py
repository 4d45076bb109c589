"""Runs problem 204, and looks whether the answer is the tensor that was given."""

import torch


def run(submission, inputs):
    kv_indptr = inputs["kv_indptr"].clone()
    given = kv_indptr.clone()
    answer = submission.qo_indptr([tuple(r) for r in inputs["reqs"]], kv_indptr)
    return {
        "qo_indptr": answer,
        "shared": answer is kv_indptr,
        "kv_indptr_kept": torch.equal(kv_indptr, given),
    }
