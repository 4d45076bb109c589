def probabilities(logits, temperatures):
    scaled = logits.float() / temperatures.unsqueeze(1)
    weights = (scaled - scaled.max(dim=0, keepdim=True).values).exp()
    return weights / weights.sum(dim=0, keepdim=True)
