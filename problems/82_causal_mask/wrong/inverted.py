import torch


def causal_mask(cached_len, device_len):
    query_at = torch.arange(cached_len, device_len).unsqueeze(1)
    key_at = torch.arange(device_len).unsqueeze(0)
    return key_at > query_at
