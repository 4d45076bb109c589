import torch


def store_kv(k_cache, v_cache, out_loc, k, v):
    """k_cache, v_cache: float32 [pages, page_size, heads, head_dim],
    written in place, maybe not contiguous;
    out_loc: int32 [tokens]; k, v: float32 [tokens, heads, head_dim].

    Returns None.
    """
    raise NotImplementedError
