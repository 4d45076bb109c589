import torch


def top_p_filter(probs, top_p):
    """probs: float32 [rows, vocab]; top_p: float32 [rows].

    Returns float32 [rows, vocab], 0 where nothing may be drawn.
    """
    raise NotImplementedError
