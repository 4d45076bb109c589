import torch


def kv_offsets(out_loc, strides, start, page_size, heads, head_dim):
    page, slot = out_loc // page_size, out_loc % page_size
    head = torch.arange(heads, dtype=torch.int32) * strides[2]
    dim = torch.arange(head_dim, dtype=torch.int32) * strides[3]
    token = page * strides[0] + slot * strides[1]
    return (token[:, None, None] + head[:, None] + dim).long() + start
