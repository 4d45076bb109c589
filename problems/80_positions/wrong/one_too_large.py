import torch


def make_positions(reqs):
    return torch.cat([torch.arange(cached + 1, device + 1, dtype=torch.int32) for cached, device in reqs])
