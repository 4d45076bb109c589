"""What is timed of problem 232: a layer as Qwen3-MoE has it, against a loop over tokens and experts."""

import torch
import torch.nn.functional as F


def tensors(size):
    """The arguments of one call, on the GPU if there is one; choices go round the experts."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokens, top_k, count, hidden, width = (size[n] for n in ("tokens", "top_k", "experts", "hidden", "width"))
    with torch.device(device):
        generator = torch.Generator(device).manual_seed(0)
        x = torch.randn(tokens, hidden, generator=generator)
        gate_up = torch.randn(count, 2 * width, hidden, generator=generator) * hidden**-0.5
        down = torch.randn(count, hidden, width, generator=generator) * width**-0.5
        experts = torch.arange(tokens * top_k).view(tokens, top_k) * 7 % count
        weights = torch.full((tokens, top_k), 1 / top_k)
    return x, weights, experts, gate_up, down


def timed(submission, size):
    given = tensors(size)
    return lambda: submission.experts_forward(*given)


def baseline(size):
    x, weights, experts, gate_up, down = tensors(size)

    def token_by_token():
        out = torch.zeros_like(x)
        for token, row in enumerate(experts.tolist()):
            for choice, expert in enumerate(row):
                gate, up = (gate_up[expert] @ x[token]).chunk(2)
                out[token] += weights[token, choice] * (down[expert] @ (F.silu(gate) * up))
        return out

    return token_by_token
