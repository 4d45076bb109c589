def store_kv(k_cache, v_cache, out_loc, k, v):
    page_size = k_cache.shape[1]
    mask = k_cache.new_zeros(len(k_cache) * page_size, dtype=bool)
    mask[out_loc] = True
    mask = mask.view(-1, page_size)
    k_cache[mask] = k
    v_cache[mask] = v
