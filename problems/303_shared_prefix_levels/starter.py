def split_levels(pages, kv_lens, qo_lens, page_size):
    """Two levels of paged metadata: what all requests share, and what
    is left of each. Eight int32 tensors.

    pages: list of B lists of page ids. kv_lens: B lengths in tokens.
    qo_lens: B numbers of queries.
    Returns qo_indptr, kv_indptr, kv_indices, last_page_len of level 0
    (one shared request), then those of level 1.
    """
    raise NotImplementedError
