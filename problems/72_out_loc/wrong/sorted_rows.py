import torch


def out_loc(page_table, reqs):
    return torch.cat([page_table[row, cached:device] for row, cached, device in sorted(reqs)])
