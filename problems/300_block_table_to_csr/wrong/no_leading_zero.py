import torch


def block_table_to_csr(block_table, seq_lens, page_size):
    counts = [-(-n // page_size) for n in seq_lens]
    indptr = torch.tensor(counts).cumsum(0).to(torch.int32)
    return indptr, torch.cat([block_table[i, :count] for i, count in enumerate(counts)])
