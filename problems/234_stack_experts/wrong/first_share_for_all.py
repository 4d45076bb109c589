import torch


def stack_experts(tensors, num_experts, rank, size):
    gate_up, down = [], []
    for expert in range(num_experts):
        gate = tensors[f"experts.{expert}.gate_proj"]
        up = tensors[f"experts.{expert}.up_proj"]
        share = gate.shape[0] // size
        mine = slice(0, share)
        gate_up.append(torch.cat([gate[mine], up[mine]]))
        down.append(tensors[f"experts.{expert}.down_proj"][:, mine])
    return torch.stack(gate_up), torch.stack(down)
