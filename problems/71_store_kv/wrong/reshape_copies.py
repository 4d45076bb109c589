def store_kv(k_cache, v_cache, out_loc, k, v):
    heads, dim = k_cache.shape[2:]
    k_cache.reshape(-1, heads, dim)[out_loc] = k
    v_cache.reshape(-1, heads, dim)[out_loc] = v
