import torch


def out_loc(page_table, reqs):
    firsts = [int(page_table[row, cached]) for row, cached, _ in reqs]
    runs = [torch.arange(f, f + d - c, dtype=torch.int32) for f, (_, c, d) in zip(firsts, reqs, strict=True)]
    return torch.cat(runs)
