import torch


def token_addresses(page_ids, kv_len, page_size, num_heads, head_dim, layout, head):
    token = torch.arange(kv_len)
    page = page_ids.long()[token // page_size]
    place = token % page_size
    stride_page = 2 * page_size * num_heads * head_dim
    if layout == "HND":
        stride_token, stride_head = num_heads * head_dim, head_dim
    else:
        stride_token, stride_head = head_dim, page_size * head_dim
    return page * stride_page + place * stride_token + head * stride_head
