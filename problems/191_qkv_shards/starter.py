def qkv_rows(num_qo_heads, num_kv_heads, head_dim, rank, size):
    """Rows of the merged matrix [q; k;
    v] that this rank has, list of int.
    """
    raise NotImplementedError
