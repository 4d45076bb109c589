def store_kv(k, v, k_cache, v_cache, out_loc):
    heads, head_dim = k.shape[1:]
    rows = (heads * head_dim, head_dim, 1)
    k = k.as_strided(k.shape, rows)
    v = v.as_strided(v.shape, rows)
    places = out_loc.long()
    k_cache.index_copy_(0, places, k)
    v_cache.index_copy_(0, places, v)
