def memory_plan(ranks, memory_ratio, page_bytes, page_size, max_positions):
    """ranks: [(free_before, free_after), ...], bytes.

    Returns (num_pages, max_seq_len), two ints.
    """
    raise NotImplementedError
