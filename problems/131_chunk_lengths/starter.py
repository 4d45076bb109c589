def chunk_lengths(chunks):
    """chunks: list of [prompt_len, start, count], ints, in tokens, in
    the order of the batch.

    Returns positions (list[int], one a new token), kv_lens (list[int],
    one a chunk), sample_rows (list[int]).
    """
    raise NotImplementedError
