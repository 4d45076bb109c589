import torch


def rms_norm(x, weight, eps):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean() + eps)
    return weight * wide.to(x.dtype)
