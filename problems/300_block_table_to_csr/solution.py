import torch


def block_table_to_csr(block_table, seq_lens, page_size):
    counts = [-(-n // page_size) for n in seq_lens]
    indptr = torch.zeros(len(counts) + 1, dtype=torch.int32)
    indptr[1:] = torch.tensor(counts, dtype=torch.int32).cumsum(0)
    rows = [block_table[i, :count] for i, count in enumerate(counts)]
    return indptr, torch.cat(rows) if rows else torch.empty(0, dtype=torch.int32)
