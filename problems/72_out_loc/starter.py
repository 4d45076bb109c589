import torch


def out_loc(page_table, reqs):
    """page_table: int32 [rows, max_len], token positions;
    reqs: [(row, cached_len, device_len), ...].

    Returns int32 [sum of device_len - cached_len].
    """
    raise NotImplementedError
