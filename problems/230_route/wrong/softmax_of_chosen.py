import torch


def route(logits, top_k, renormalize):
    scores, experts = logits.topk(top_k, dim=-1)
    return scores.softmax(dim=-1, dtype=torch.float32), experts
