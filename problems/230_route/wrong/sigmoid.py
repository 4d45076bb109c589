

def route(logits, top_k, renormalize):
    weights, experts = logits.float().sigmoid().topk(top_k, dim=-1)
    if renormalize:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights, experts
