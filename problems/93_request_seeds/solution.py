import torch


def sample(probs, seeds, positions, exponential):
    vocab = probs.shape[1]
    noise = torch.stack([exponential(s, p, vocab) for s, p in zip(seeds, positions, strict=True)])
    return (probs / noise).argmax(dim=-1).int()
