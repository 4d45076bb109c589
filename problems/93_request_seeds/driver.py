"""Runs problem 93. The random numbers are a hash of seed and position, so that they are the same on every machine."""

import hashlib
import math

import torch


def run(submission, inputs):
    seeds, positions = list(inputs["seeds"]), list(inputs["positions"])
    return {"tokens": submission.sample(inputs["probs"], seeds, positions, exponential)}


def exponential(seed, position, vocab):
    numbers = []
    for token in range(vocab):
        digest = hashlib.blake2b(f"{int(seed)}/{int(position)}/{token}".encode(), digest_size=6).digest()
        uniform = (int.from_bytes(digest, "little") + 1) / ((1 << 48) + 2)
        numbers.append(-math.log(uniform))
    return torch.tensor(numbers, dtype=torch.float32)
