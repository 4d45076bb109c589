import torch


def fused_add_rms_norm(x, residual, weight, eps):
    residual = x + residual
    wide = residual.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    x = weight * wide.to(x.dtype)
