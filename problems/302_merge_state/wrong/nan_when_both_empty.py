import torch


def merge_state(v_a, s_a, v_b, s_b):
    anchor = torch.maximum(s_a, s_b)
    a, b = torch.exp2(s_a - anchor), torch.exp2(s_b - anchor)
    total = a + b
    v = v_a * (a / total).unsqueeze(-1) + v_b * (b / total).unsqueeze(-1)
    return v, torch.log2(total) + anchor
