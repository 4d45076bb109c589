def block_table_to_csr(block_table, seq_lens, page_size):
    """CSR of a batch's pages: indptr int32 [B + 1], indices int32
    [indptr[-1]].

    block_table: int32 [B, max_pages], page ids;
    what stands after a request's last page means nothing.
    seq_lens: list of B lengths in tokens, 0 allowed.
    page_size: tokens a page.
    """
    raise NotImplementedError
