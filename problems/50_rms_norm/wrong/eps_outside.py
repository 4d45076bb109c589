import torch


def rms_norm(x, weight, eps):
    wide = x.float()
    wide = wide / (wide.pow(2).mean(dim=-1, keepdim=True).sqrt() + eps)
    return weight * wide.to(x.dtype)
