import torch
import torch.nn.functional as F


def experts_forward(x, weights, experts, gate_up, down):
    top_k = experts.shape[1]
    chosen, order = experts.flatten().sort(stable=True)
    counts = torch.bincount(chosen, minlength=len(gate_up)).tolist()
    rows = x[order // top_k]
    answers, first = [], 0
    for expert, count in enumerate(counts):
        if count:
            gate, up = (rows[first : first + count] @ gate_up[expert].T).chunk(2, dim=-1)
            answers.append(F.silu(gate) * up @ down[expert].T)
            first += count
    back = torch.empty_like(rows)
    back[:] = torch.cat(answers) if answers else rows
    return (back.view(len(x), top_k, -1) * weights[:, :, None]).sum(dim=1)
