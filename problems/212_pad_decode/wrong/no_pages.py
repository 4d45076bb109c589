import torch


def pad_decode(indptr, indices, last_page_len, size, dummy_page):
    extra = size - len(last_page_len)
    more = indptr[-1].repeat(extra)
    pages = indices[:0]
    ones = torch.ones(extra, dtype=torch.int32)
    return torch.cat([indptr, more]), torch.cat([indices, pages]), torch.cat([last_page_len, ones])
