"""Runs problem 32 on a model that is a formula over its KV list: an entry is a number made of token and position, and a
row of logits depends on all entries in order."""

import torch

VOCAB = 13


def run(submission, inputs):
    prompt, calls = list(inputs["prompt"]), []

    def model(ids, positions, cache):
        calls.append([[int(i) for i in ids], [int(p) for p in positions]])
        rows = []
        for token, position in zip(ids, positions, strict=False):
            cache.append((int(token) * 11 + int(position) * 17 + 5) % 1009)
            rows.append(logits(cache, inputs["salt"]))
        return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), VOCAB)

    tokens = submission.generate(model, prompt, inputs["max_new_tokens"])
    return {"tokens": tokens, "calls": calls, "prompt_after": prompt}


def logits(cache, salt):
    state = salt
    for entry in cache:
        state = (state * 37 + entry) % 1009
    return [float((state * (column + 3) + column * column) % 101) for column in range(VOCAB)]
