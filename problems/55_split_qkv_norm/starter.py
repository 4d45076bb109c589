import torch


def split_qkv(qkv, num_qo_heads, num_kv_heads, q_weight, k_weight, eps):
    """qkv: float32 [tokens, (H + 2 KH) * D];
    q_weight, k_weight: float32 [D].

    Returns (q [tokens, H, D], k [tokens, KH, D], v [tokens, KH, D]),
    float32.
    """
    raise NotImplementedError
