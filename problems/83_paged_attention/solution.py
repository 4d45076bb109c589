import torch


def paged_attention(q, k_pool, v_pool, page_table, reqs):
    k_tokens, v_tokens = k_pool.flatten(0, 1), v_pool.flatten(0, 1)
    group = q.shape[1] // k_pool.shape[2]
    outputs, start = [], 0
    for row, cached, device in reqs:
        n = device - cached
        where = page_table[row, :device]
        k = k_tokens[where].repeat_interleave(group, dim=1)
        v = v_tokens[where].repeat_interleave(group, dim=1)
        scores = torch.einsum("ihd,jhd->hij", q[start : start + n], k) * q.shape[-1] ** -0.5
        query_at = torch.arange(cached, device).unsqueeze(1)
        hidden = torch.arange(device) > query_at
        weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
        outputs.append(torch.einsum("hij,jhd->ihd", weights, v))
        start += n
    return torch.cat(outputs)
