def qo_indptr(reqs, kv_indptr):
    """int32 [B + 1]. reqs: list of (cached_len, device_len).
    kv_indptr: int32 [B + 1].
    """
    raise NotImplementedError
