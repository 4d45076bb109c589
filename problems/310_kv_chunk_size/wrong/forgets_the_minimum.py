def kv_chunk_size(num_pages, max_blocks, min_chunk):
    def blocks(chunk):
        return sum(max(1, -(-pages // chunk)) for pages in num_pages)

    low, high = 1, max(1, *num_pages)
    while low < high:
        middle = (low + high) // 2
        if blocks(middle) > max_blocks:
            low = middle + 1
        else:
            high = middle
    return low, blocks(low), any(pages > low for pages in num_pages)
