def min_p_filter(probs, min_p):
    threshold = min_p.unsqueeze(1) * probs.max()
    return probs * (probs >= threshold)
