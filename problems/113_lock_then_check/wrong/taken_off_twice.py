def check(kv_tokens, matched, locked, free_pages, evictable_pages, reserved_pages, page_size):
    needed = -(-kv_tokens // page_size) - matched
    # Locking takes the pages that nobody had locked out of what may be evicted.
    available = free_pages + evictable_pages - matched - reserved_pages
    return needed, available, needed <= available
