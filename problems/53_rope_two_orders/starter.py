import torch


def rotate(x, positions, base, interleaved):
    """x: float32 or bfloat16 [tokens, heads, D];
    positions: int32 [tokens]; base: float; interleaved: bool.

    Returns a new tensor like x.
    """
    raise NotImplementedError
