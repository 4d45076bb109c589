import torch


def query_borders(reqs):
    lengths = [device - cached for cached, device in reqs]
    cu_seqlens_q = torch.tensor([0, *lengths], dtype=torch.int32).cumsum_(dim=0)
    return cu_seqlens_q[1:], cu_seqlens_q[1:] - 1
