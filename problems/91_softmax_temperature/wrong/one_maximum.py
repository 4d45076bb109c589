def probabilities(logits, temperatures):
    scaled = logits.float() / temperatures.unsqueeze(1)
    weights = (scaled - scaled.max()).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
