def shard_kv(weight, num_kv_heads, rank, tp_size):
    share = max(1, len(weight) // tp_size)
    return weight[rank * share : (rank + 1) * share]
