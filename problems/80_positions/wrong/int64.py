import torch


def make_positions(reqs):
    return torch.cat([torch.arange(cached, device) for cached, device in reqs])
