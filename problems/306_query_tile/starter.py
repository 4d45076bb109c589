def query_tile(qo_lens, num_qo_heads, num_kv_heads, head_dim):
    """The rows of a query tile, and how many tiles each request has.

    qo_lens: queries of each request, in tokens, 0 allowed.
    num_qo_heads is a multiple of num_kv_heads.
    Returns (tile, tiles): tile one of 16, 64, 128;
    tiles a list with one number a request.
    """
    raise NotImplementedError
