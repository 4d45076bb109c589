import torch


def sample(probs, seeds, positions, exponential):
    vocab = probs.shape[1]
    noise = torch.stack([exponential(seeds[0], positions[0], vocab) for _ in seeds])
    return (probs / noise).argmax(dim=-1).int()
