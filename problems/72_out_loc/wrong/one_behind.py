import torch


def out_loc(page_table, reqs):
    return torch.cat([page_table[row, cached + 1 : device + 1] for row, cached, device in reqs])
