import torch


def out_loc(page_table, reqs):
    return torch.cat([page_table[row, : device - cached] for row, cached, device in reqs])
