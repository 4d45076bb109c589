def cache_request(row, locked, tree, length, page_size, finished):
    """row: list[int], the request's pages in order;
    locked, length, page_size: ints, in pages, tokens, tokens;
    tree: list[int], pages that the cache has for this request's tokens,
    from the first on; finished: bool.

    Returns freed (list[int], in the order of the row), added
    (list[int]) and the row afterwards (list[int]).
    """
    raise NotImplementedError
