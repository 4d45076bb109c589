import torch


def shard_kv(weight, num_kv_heads, rank, tp_size):
    """weight: float32 [num_kv_heads * head_dim, hidden].

    Returns this rank's rows, [local_heads * head_dim, hidden].
    """
    raise NotImplementedError
