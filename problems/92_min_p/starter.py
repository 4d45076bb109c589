import torch


def min_p_filter(probs, min_p):
    """probs: float32 [rows, vocab]; min_p: float32 [rows].

    Returns float32 [rows, vocab], 0 where nothing may be drawn.
    """
    raise NotImplementedError
