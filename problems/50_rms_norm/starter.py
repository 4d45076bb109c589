import torch


def rms_norm(x, weight, eps):
    """x: float32, float16 or bfloat16 [..., n]; weight: same dtype [n];
    eps: float.

    Returns a new tensor like x.
    """
    raise NotImplementedError
