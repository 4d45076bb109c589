"""What is timed of problem 222: one call over a pool in one piece of memory, against two index_copy_."""

import torch


def tensors(size):
    """The arguments of one call, on the GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokens, heads, head_dim, slots = (size[name] for name in ("tokens", "heads", "head_dim", "slots"))
    qkv = torch.ones(tokens, 4 * heads, head_dim, dtype=torch.bfloat16, device=device)
    pool = torch.zeros(slots, heads, 2, head_dim, dtype=torch.bfloat16, device=device)
    # Spread over the pool, and none twice: an odd step goes through all of a power of two.
    out_loc = (torch.arange(tokens, device=device) * 7919 % slots).to(torch.int32)
    return qkv[:, -2 * heads : -heads], qkv[:, -heads:], pool[:, :, 0], pool[:, :, 1], out_loc


def timed(submission, size):
    given = tensors(size)
    return lambda: submission.store_kv(*given)


def baseline(size):
    k, v, k_cache, v_cache, out_loc = tensors(size)
    places = out_loc.long()

    def two_copies():
        k_cache.index_copy_(0, places, k)
        v_cache.index_copy_(0, places, v)

    return two_copies
