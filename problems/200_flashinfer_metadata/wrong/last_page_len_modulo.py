import torch


def flashinfer_metadata(reqs, page_table, page_size):
    counts = [(n + page_size - 1) // page_size for _, _, n in reqs]
    qo_indptr = indptr([m for _, m, _ in reqs])
    kv_indptr = indptr(counts)
    kv_indices = torch.cat([page_table[row, :n:page_size] // page_size for row, _, n in reqs])
    last = torch.tensor([n - (c - 1) * page_size for (_, _, n), c in zip(reqs, counts)], dtype=torch.int32)
    last = torch.tensor([n % page_size for _, _, n in reqs], dtype=torch.int32)
    return qo_indptr, kv_indptr, kv_indices, last


def indptr(lengths):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum_(0)
