import torch


def block_table_to_csr(block_table, seq_lens, page_size):
    width = max(-(-n // page_size) for n in seq_lens)
    indptr = torch.arange(len(seq_lens) + 1, dtype=torch.int32) * width
    return indptr, block_table[:, :width].reshape(-1).contiguous()
