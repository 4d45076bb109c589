import torch


def make_positions(reqs):
    return torch.cat([torch.arange(device - cached, dtype=torch.int32) for cached, device in reqs])
