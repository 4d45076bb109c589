import torch


def make_positions(reqs):
    return torch.arange(sum(device - cached for cached, device in reqs), dtype=torch.int32)
