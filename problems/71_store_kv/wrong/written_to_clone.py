def store_kv(k_cache, v_cache, out_loc, k, v):
    page_size = k_cache.shape[1]
    pages, slots = out_loc // page_size, out_loc % page_size
    k_cache = k_cache.index_put((pages, slots), k)
    v_cache = v_cache.index_put((pages, slots), v)
