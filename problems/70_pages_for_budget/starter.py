def plan_pool(config, page_size, dtype_bytes, tp_size, budget):
    """config: dict of ints num_layers, num_qo_heads, num_kv_heads,
    head_dim.

    Returns (bytes_per_token, num_pages).
    """
    raise NotImplementedError
