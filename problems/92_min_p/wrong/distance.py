def min_p_filter(probs, min_p):
    threshold = probs.max(dim=-1, keepdim=True).values - min_p.unsqueeze(1)
    return probs * (probs >= threshold)
