import torch


def make_positions(reqs):
    return torch.cat([torch.arange(reqs[0][0], reqs[0][0] + device - cached, dtype=torch.int32) for cached, device in reqs])
