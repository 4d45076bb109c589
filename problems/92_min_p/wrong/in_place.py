def min_p_filter(probs, min_p):
    threshold = min_p.unsqueeze(1) * probs.max(dim=-1, keepdim=True).values
    probs[probs < threshold] = 0
    return probs
