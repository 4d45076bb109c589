def token_addresses(page_ids, kv_len, page_size, num_heads, head_dim, layout, head):
    """Where the keys of one head begin, token by token: int64 [kv_len],
    counted in elements from the cache's first.

    page_ids: int32 [pages], the request's pages in order.
    The cache holds K and V together:
    [num_pages, 2, page_size, num_heads, head_dim] ("NHD") or
    [num_pages, 2, num_heads, page_size, head_dim] ("HND").
    """
    raise NotImplementedError
