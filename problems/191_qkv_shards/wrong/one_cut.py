def qkv_rows(num_qo_heads, num_kv_heads, head_dim, rank, size):
    rows = (num_qo_heads + 2 * num_kv_heads) * head_dim
    return list(range(rank * rows // size, (rank + 1) * rows // size))
