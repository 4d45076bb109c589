def min_p_filter(probs, min_p):
    threshold = min_p.unsqueeze(1)
    return probs * (probs >= threshold)
