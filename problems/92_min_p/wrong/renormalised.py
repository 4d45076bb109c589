def min_p_filter(probs, min_p):
    threshold = min_p.unsqueeze(1) * probs.max(dim=-1, keepdim=True).values
    kept = probs * (probs >= threshold)
    return kept / kept.sum(dim=-1, keepdim=True)
