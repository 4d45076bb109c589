import torch


def kv_offsets(out_loc, strides, start, page_size, heads, head_dim):
    place = out_loc.long()
    page, slot = place % page_size, place // page_size
    head = torch.arange(heads, dtype=torch.int64) * strides[2]
    dim = torch.arange(head_dim, dtype=torch.int64) * strides[3]
    token = start + page * strides[0] + slot * strides[1]
    return token[:, None, None] + head[:, None] + dim
