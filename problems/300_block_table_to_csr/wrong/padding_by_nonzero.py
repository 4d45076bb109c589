import torch


def block_table_to_csr(block_table, seq_lens, page_size):
    rows = [row[row > 0] for row in block_table]
    counts = torch.tensor([len(row) for row in rows], dtype=torch.int32)
    indptr = torch.zeros(len(rows) + 1, dtype=torch.int32)
    indptr[1:] = counts.cumsum(0)
    return indptr, torch.cat(rows)
