import torch


def kv_offsets(out_loc, strides, start, page_size, heads, head_dim):
    page, slot = out_loc // page_size, out_loc % page_size
    head = torch.arange(heads) * strides[2]
    dim = torch.arange(head_dim) * strides[3]
    token = start + page * strides[0] + slot * strides[1]
    return token[:, None, None] + head[:, None] + dim
