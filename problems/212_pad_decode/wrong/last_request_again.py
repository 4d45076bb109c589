import torch


def pad_decode(indptr, indices, last_page_len, size, dummy_page):
    extra = size - len(last_page_len)
    pages = indices[int(indptr[-2]) :]
    more = indptr[-1] + len(pages) * torch.arange(1, extra + 1, dtype=torch.int32)
    return (
        torch.cat([indptr, more]),
        torch.cat([indices, *[pages] * extra]),
        torch.cat([last_page_len, last_page_len[-1:].repeat(extra)]),
    )
