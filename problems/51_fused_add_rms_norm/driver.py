"""Runs problem 51: x is laid into a buffer as the case says, and what lies there after the call is the output."""

import torch


def run(submission, inputs):
    given, columns = inputs["x"], inputs["first_column"]
    tokens, n = given.shape
    buffer = torch.full((tokens + 1, n + 2 * columns), 7.0, dtype=given.dtype)
    x = buffer[:tokens, columns : columns + n]
    x.copy_(given)
    residual, weight = inputs["residual"].clone(), inputs["weight"].clone()
    submission.fused_add_rms_norm(x, residual, weight, inputs["eps"])
    outside = torch.ones_like(buffer, dtype=torch.bool)
    outside[:tokens, columns : columns + n] = False
    # Looked up in the buffer, not in x: the submission may have made x itself into something else.
    return {
        "x": buffer[:tokens, columns : columns + n].clone(),
        "residual": residual,
        "weight": weight,
        "outside": bool((buffer[outside] == 7.0).all()),
    }
