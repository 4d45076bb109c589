import torch


def top_p_filter(probs, top_p):
    ranked, order = probs.sort(dim=-1, descending=True, stable=True)
    keep = ranked.cumsum(dim=-1) <= top_p.unsqueeze(1)
    keep[:, 0] = True
    return torch.zeros_like(probs).scatter_(1, order, ranked * keep)
