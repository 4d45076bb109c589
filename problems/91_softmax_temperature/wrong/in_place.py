def probabilities(logits, temperatures):
    scaled = logits.float()
    scaled /= temperatures.unsqueeze(1)
    weights = (scaled - scaled.max(dim=-1, keepdim=True).values).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
