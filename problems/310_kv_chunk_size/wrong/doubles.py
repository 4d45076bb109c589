def kv_chunk_size(num_pages, max_blocks, min_chunk):
    def blocks(chunk):
        return sum(max(1, -(-pages // chunk)) for pages in num_pages)

    chunk, longest = min_chunk, max(min_chunk, *num_pages)
    while blocks(chunk) > max_blocks:
        chunk = min(2 * chunk, longest)
    return chunk, blocks(chunk), any(pages > chunk for pages in num_pages)
