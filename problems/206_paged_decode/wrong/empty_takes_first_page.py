import torch


def paged_decode(q, k_pool, v_pool, indptr, indices):
    out = torch.zeros_like(q)
    group = q.shape[1] // k_pool.shape[1]
    scale = q.shape[2] ** -0.5
    bounds = indptr.tolist()
    for i in range(len(q)):
        pages = indices[bounds[i] : bounds[i + 1]].long()
        if not len(pages):
            pages = torch.zeros(1, dtype=torch.int64)
        k = k_pool[pages].repeat_interleave(group, dim=1)
        v = v_pool[pages].repeat_interleave(group, dim=1)
        scores = (k * q[i]).sum(dim=-1) * scale
        weights = scores.softmax(dim=0)
        out[i] = (weights[:, :, None] * v).sum(dim=0)
    return out
