import torch


def merge_state(v_a, s_a, v_b, s_b):
    largest = torch.maximum(s_a, s_b)
    anchor = torch.where(largest == -torch.inf, torch.zeros_like(largest), largest)
    total = torch.exp2(s_a - anchor) + torch.exp2(s_b - anchor)
    return (v_a + v_b) / 2, torch.log2(total) + anchor
