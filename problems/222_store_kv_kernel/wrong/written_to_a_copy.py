def store_kv(k, v, k_cache, v_cache, out_loc):
    k_cache.flatten(1)[out_loc] = k.flatten(1)
    v_cache.flatten(1)[out_loc] = v.flatten(1)
