import torch


def variant_logits(scores, q_pos, kv_pos, scale, soft_cap, window_left, slope):
    logits = scores
    if soft_cap > 0:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    logits = logits * scale
    distance = q_pos.unsqueeze(1) - kv_pos.unsqueeze(0)
    logits = logits - slope * distance
    seen = distance >= 0
    if window_left >= 0:
        seen = seen & (distance <= window_left)
    return logits.masked_fill(~seen, -torch.inf)
