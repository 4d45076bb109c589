import torch


def make_positions(reqs):
    return torch.cat([torch.arange(device, dtype=torch.int32) for cached, device in reqs])
