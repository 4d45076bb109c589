import torch


def token_addresses(page_ids, kv_len, page_size, num_heads, head_dim, layout, head):
    token = torch.arange(kv_len)
    stride_page = 2 * page_size * num_heads * head_dim
    if layout == "NHD":
        stride_token, stride_head = num_heads * head_dim, head_dim
    else:
        stride_token, stride_head = head_dim, page_size * head_dim
    first = page_ids.long()[0] * stride_page
    return first + token * stride_token + head * stride_head
