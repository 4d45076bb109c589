import torch


def probabilities(logits, temperatures):
    """logits: float32 or bfloat16 [rows, vocab];
    temperatures: float32 [rows] > 0.

    Returns float32 [rows, vocab].
    """
    raise NotImplementedError
