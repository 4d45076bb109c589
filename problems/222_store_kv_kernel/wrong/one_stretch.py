def store_kv(k, v, k_cache, v_cache, out_loc):
    first = int(out_loc.min()) if len(out_loc) else 0
    first = min(first, len(k_cache) - len(k))
    k_cache[first : first + len(k)] = k
    v_cache[first : first + len(v)] = v
