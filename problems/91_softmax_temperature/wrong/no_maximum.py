def probabilities(logits, temperatures):
    scaled = logits.float() / temperatures.unsqueeze(1)
    weights = scaled.exp()
    return weights / weights.sum(dim=-1, keepdim=True)
