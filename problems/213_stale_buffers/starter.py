def stale_buffers(buffers, batch, padding):
    """Names of buffers that are wrong, sorted list of str.

    buffers: dict of int32 [N]. batch: dict of int32 [B], B <= N.
    padding: dict of int, for some of the names.
    """
    raise NotImplementedError
