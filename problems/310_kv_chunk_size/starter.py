def kv_chunk_size(num_pages, max_blocks, min_chunk):
    """The KV chunk size of a decode batch, in pages: the smallest whose
    chunks all run at once.

    num_pages: pages of each request, 0 allowed.
    max_blocks: chunks that run at once, at least the number of
    requests.
    min_chunk: no chunk is smaller, in pages, at least 1.
    Returns (chunk, blocks, split): chunk in pages, blocks = all chunks
    together, split = whether any request is cut.
    """
    raise NotImplementedError
