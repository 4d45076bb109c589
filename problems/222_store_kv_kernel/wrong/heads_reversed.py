def store_kv(k, v, k_cache, v_cache, out_loc):
    k_cache[out_loc] = k.flip(1)
    v_cache[out_loc] = v.flip(1)
