import torch


def split_qkv(qkv, num_qo_heads, num_kv_heads, q_weight, k_weight, eps):
    dim = len(q_weight)
    q, k, v = qkv.chunk(3, dim=-1)
    q, k, v = (x.reshape(len(qkv), -1, dim) for x in (q, k, v))
    return norm(q, q_weight, eps), norm(k, k_weight, eps), v


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * weight
