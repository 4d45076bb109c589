import torch


def renorm(probs):
    return probs / probs.sum()


def top_k(probs, k):
    pivot = probs.sort(descending=True).values[min(k, len(probs)) - 1]
    return torch.where(probs >= pivot, probs, torch.zeros_like(probs))


def top_p(probs, p):
    values, order = probs.sort(descending=True, stable=True)
    before = values.cumsum(0) - values
    kept = torch.where(before < p, values, torch.zeros_like(values))
    return torch.zeros_like(probs).scatter(0, order, kept)


def filtered(probs, k, p, order):
    if order == "top_k_first":
        return top_p(renorm(top_k(probs, k)), p)
    return (torch.minimum(top_k(probs, k), top_p(probs, p)))
