import torch


def qo_indptr(reqs, kv_indptr):
    query_lens = [device_len - cached_len for cached_len, device_len in reqs]
    if max(query_lens) == 1:
        return torch.arange(len(reqs) + 1, dtype=torch.int32)
    if all(cached_len == 0 for cached_len, _ in reqs):
        return kv_indptr
    indptr = torch.zeros(len(reqs) + 1, dtype=torch.int32)
    indptr[1:] = torch.tensor(query_lens, dtype=torch.int32).cumsum(0)
    return indptr
