import torch


def query_borders(reqs):
    """reqs: [(cached_len, device_len), ...].

    Returns (cu_seqlens_q int32 [B + 1], last_indices int32 [B]).
    """
    raise NotImplementedError
