import torch


def rms_norm(x, weight, eps):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (weight.float() * wide).to(x.dtype)
