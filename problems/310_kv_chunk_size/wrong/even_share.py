def kv_chunk_size(num_pages, max_blocks, min_chunk):
    chunk = max(min_chunk, -(-sum(num_pages) // max_blocks))
    chunk = min(chunk, max(min_chunk, *num_pages))
    blocks = sum(max(1, -(-pages // chunk)) for pages in num_pages)
    return chunk, blocks, any(pages > chunk for pages in num_pages)
