def kv_offsets(out_loc, strides, start, page_size, heads, head_dim):
    """int64 [tokens, heads, head_dim], offsets in elements.
    out_loc: int32 [tokens]; strides: four int.
    """
    raise NotImplementedError
