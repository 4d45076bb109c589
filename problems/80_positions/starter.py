import torch


def make_positions(reqs):
    """reqs: [(cached_len, device_len), ...], tokens.

    Returns int32 [sum of device_len - cached_len].
    """
    raise NotImplementedError
