import torch


def split_qkv(qkv, num_qo_heads, num_kv_heads, q_weight, k_weight, eps):
    dim = len(q_weight)
    q, k, v = qkv.split([num_qo_heads * dim, num_kv_heads * dim, num_kv_heads * dim], dim=-1)
    q, k, v = (x.unflatten(-1, (-1, dim)) for x in (q, k, v))
    return norm(q, q_weight, eps), norm(k, k_weight, eps), v


def norm(x, weight, eps):
    return x.mul_(torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)).mul_(weight)
