def workspace(batches, num_qo_heads, tile, head_dim, capacity):
    needed, failing = [], []
    for chunks in batches:
        rows = num_qo_heads * sum(chunks) * tile if max(chunks) > 1 else 0
        tmp_v, tmp_s = rows * head_dim * 4, rows * 4
        needed.append(tmp_v + tmp_s)
        failing.append("tmp_v" if tmp_v > capacity else "tmp_s" if tmp_v + tmp_s > capacity else "")
        capacity -= tmp_v + tmp_s
    return needed, failing
