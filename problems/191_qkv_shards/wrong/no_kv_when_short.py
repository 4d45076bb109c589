def qkv_rows(num_qo_heads, num_kv_heads, head_dim, rank, size):
    qo = num_qo_heads // size
    kv = num_kv_heads // size
    first_qo = rank * qo
    first_kv = rank * num_kv_heads // size
    rows = []
    for start, count in (
        (first_qo, qo),
        (num_qo_heads + first_kv, kv),
        (num_qo_heads + num_kv_heads + first_kv, kv),
    ):
        rows += range(start * head_dim, (start + count) * head_dim)
    return rows
