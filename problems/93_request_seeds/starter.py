import torch


def sample(probs, seeds, positions, exponential):
    """probs: float32 [rows, vocab]; seeds, positions: list[int];
    exponential(seed, position, vocab) -> float32 [vocab].

    Returns int32 [rows].
    """
    raise NotImplementedError
