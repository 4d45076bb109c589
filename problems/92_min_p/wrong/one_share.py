def min_p_filter(probs, min_p):
    threshold = min_p[0] * probs.max(dim=-1, keepdim=True).values
    return probs * (probs >= threshold)
