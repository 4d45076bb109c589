import torch


def sample(probs, seeds, positions, exponential):
    vocab = probs.shape[1]
    noise = torch.stack([exponential(s, 0, vocab) for s, p in zip(seeds, positions, strict=True)])
    return (probs / noise).argmax(dim=-1).int()
