def flash_metadata(reqs, page_table, page_size):
    """(page_numbers int32 [B, W], cache_seqlens int32 [B], cu_seqlens_q
    int32 [B + 1], max_seqlen_q int).

    reqs: list of (row, extend_len, seq_len).
    page_table: int32 [rows, max_len], by token position.
    """
    raise NotImplementedError
