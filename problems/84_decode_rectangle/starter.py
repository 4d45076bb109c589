import torch


def decode_rectangle(page_table, reqs):
    """page_table: int32 [rows, max_len];
    reqs: [(row, device_len), ...].

    Returns (kv_indices int32 [B, L], visible bool [B, L]), L the
    largest device_len.
    """
    raise NotImplementedError
