"""Runs problem 30 on a model small enough to be a formula: what comes next depends on every token before, and on their
order. Each call's length is noted."""

import torch

VOCAB = 13


def run(submission, inputs):
    prompt, fed = list(inputs["prompt"]), []

    def model(ids):
        fed.append(len(ids))
        return logits(ids, inputs["salt"])

    tokens = submission.generate(model, prompt, inputs["max_new_tokens"], list(inputs["eos_ids"]))
    return {"tokens": tokens, "fed": fed, "prompt_after": prompt}


def logits(ids, salt):
    """float32 [len(ids), VOCAB]; row t is a function of ids[: t + 1]."""
    state, rows = salt, []
    for token in ids:
        state = (state * 37 + int(token) * 11 + 5) % 1009
        rows.append([float((state * (column + 3) + column * column) % 101) for column in range(VOCAB)])
    return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), VOCAB)
