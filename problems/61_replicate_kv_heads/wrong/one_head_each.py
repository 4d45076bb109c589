def shard_kv(weight, num_kv_heads, rank, tp_size):
    head_dim = len(weight) // num_kv_heads
    local_heads = 1
    first = rank * num_kv_heads // tp_size
    return weight[first * head_dim : (first + local_heads) * head_dim]
