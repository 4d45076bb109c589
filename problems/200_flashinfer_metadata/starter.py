import torch


def flashinfer_metadata(reqs, page_table, page_size):
    """reqs: [(row, extend_len, seq_len), ...];
    page_table: int32 [rows, max_len], token positions.

    Returns (qo_indptr, kv_indptr, kv_indices, kv_last_page_len), four
    int32 tensors.
    """
    raise NotImplementedError
