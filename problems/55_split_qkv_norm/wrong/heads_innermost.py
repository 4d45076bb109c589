import torch


def split_qkv(qkv, num_qo_heads, num_kv_heads, q_weight, k_weight, eps):
    dim = len(q_weight)
    q, k, v = qkv.split([num_qo_heads * dim, num_kv_heads * dim, num_kv_heads * dim], dim=-1)
    q, k, v = (x.reshape(len(qkv), dim, x.shape[1] // dim).transpose(1, 2) for x in (q, k, v))
    return norm(q, q_weight, eps), norm(k, k_weight, eps), v


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * weight
