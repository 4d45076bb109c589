import torch


def merge_state(v_a, s_a, v_b, s_b):
    largest = torch.maximum(s_a, s_b)
    anchor = torch.where(largest == -torch.inf, torch.zeros_like(largest), largest)
    a, b = torch.exp(s_a - anchor), torch.exp(s_b - anchor)
    total = a + b
    safe = torch.where(total == 0, torch.ones_like(total), total)
    v = v_a * (a / safe).unsqueeze(-1) + v_b * (b / safe).unsqueeze(-1)
    return v, torch.log(total) + anchor
