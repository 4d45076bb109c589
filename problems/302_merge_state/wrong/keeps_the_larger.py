import torch


def merge_state(v_a, s_a, v_b, s_b):
    larger = s_a >= s_b
    return torch.where(larger.unsqueeze(-1), v_a, v_b), torch.maximum(s_a, s_b)
