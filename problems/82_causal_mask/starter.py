import torch


def causal_mask(cached_len, device_len):
    """Two ints, in tokens.

    Returns bool [device_len - cached_len, device_len], True where a
    query sees a key.
    """
    raise NotImplementedError
