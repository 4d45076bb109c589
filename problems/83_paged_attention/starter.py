import torch


def paged_attention(q, k_pool, v_pool, page_table, reqs):
    """q: float32 [total, H, D];
    k_pool, v_pool: float32 [pages, page_size, KH, D];
    page_table: int32 [rows, max_len];
    reqs: [(row, cached_len, device_len), ...].

    Returns float32 [total, H, D].
    """
    raise NotImplementedError
