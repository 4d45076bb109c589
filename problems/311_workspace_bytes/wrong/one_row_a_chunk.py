def workspace(batches, num_qo_heads, tile, head_dim, capacity):
    needed, failing = [], []
    for chunks in batches:
        split = any(count > 1 for count in chunks)
        rows = num_qo_heads * sum(chunks) if split else 0
        tmp_v, tmp_s = rows * head_dim * 4, rows * 4
        needed.append(tmp_v + tmp_s)
        failing.append("tmp_v" if tmp_v > capacity else "tmp_s" if tmp_v + tmp_s > capacity else "")
    return needed, failing
