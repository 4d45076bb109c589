def paged_decode(q, k_pool, v_pool, indptr, indices):
    """float32 [B, heads, head_dim].

    q float32 [B, heads, head_dim];
    k_pool, v_pool float32 [slots, kv_heads, head_dim];
    indptr int32 [B + 1]; indices int32.
    """
    raise NotImplementedError
