def store_kv(k, v, k_cache, v_cache, out_loc):
    """Write k and v into their slots, in place.

    k, v: [tokens, heads, head_dim].
    k_cache, v_cache: [slots, heads, head_dim], not contiguous.
    out_loc: int32 [tokens].
    """
    raise NotImplementedError
