import torch


def merge_state(v_a, s_a, v_b, s_b):
    a, b = torch.exp2(s_a), torch.exp2(s_b)
    total = a + b
    safe = torch.where(total == 0, torch.ones_like(total), total)
    v = v_a * (a / safe).unsqueeze(-1) + v_b * (b / safe).unsqueeze(-1)
    return v, torch.log2(total)
