def pad_decode(indptr, indices, last_page_len, size, dummy_page):
    """(indptr int32 [size + 1], indices int32, last_page_len int32
    [size]).

    indptr int32 [B + 1], indices int32 [indptr[-1]], last_page_len
    int32 [B]; size >= B; dummy_page: int.
    """
    raise NotImplementedError
