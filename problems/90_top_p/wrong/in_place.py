def top_p_filter(probs, top_p):
    ranked, order = probs.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(dim=-1) - ranked
    keep = before < top_p.unsqueeze(1)
    return probs.scatter_(1, order, ranked * keep)
