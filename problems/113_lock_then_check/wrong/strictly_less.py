def check(kv_tokens, matched, locked, free_pages, evictable_pages, reserved_pages, page_size):
    needed = -(-kv_tokens // page_size) - matched
    available = free_pages + evictable_pages - (matched - locked) - reserved_pages
    return needed, available, needed < available
