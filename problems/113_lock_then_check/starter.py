def check(kv_tokens, matched, locked, free_pages, evictable_pages, reserved_pages, page_size):
    """kv_tokens, page_size: ints, in tokens;
    the others: ints, in pages.

    Returns needed (int, pages), available (int, pages) and admitted
    (bool).
    """
    raise NotImplementedError
