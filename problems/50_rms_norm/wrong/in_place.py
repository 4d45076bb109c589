import torch


def rms_norm(x, weight, eps):
    scale = torch.rsqrt(x.float().pow(2).mean(dim=-1, keepdim=True) + eps)
    x.copy_(x.float() * scale)
    return x.mul_(weight)
