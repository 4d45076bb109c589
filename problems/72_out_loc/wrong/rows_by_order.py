import torch


def out_loc(page_table, reqs):
    return torch.cat([page_table[i, cached:device] for i, (_, cached, device) in enumerate(reqs)])
