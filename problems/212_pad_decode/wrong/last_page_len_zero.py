import torch


def pad_decode(indptr, indices, last_page_len, size, dummy_page):
    extra = size - len(last_page_len)
    more = indptr[-1] + torch.arange(1, extra + 1, dtype=torch.int32)
    pages = torch.full((extra,), dummy_page, dtype=torch.int32)
    ones = torch.zeros(extra, dtype=torch.int32)
    return torch.cat([indptr, more]), torch.cat([indices, pages]), torch.cat([last_page_len, ones])
