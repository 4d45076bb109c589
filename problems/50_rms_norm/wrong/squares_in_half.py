import torch


def rms_norm(x, weight, eps):
    scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * (x * scale)
