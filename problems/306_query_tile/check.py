"""What the checker derives from an answer to problem 306: the plan of its own fake wrapper for such a batch."""

from functools import lru_cache
from itertools import accumulate

import torch
from flashinfer import BatchPrefillWithPagedKVCacheWrapper

from judge.core.verdict import Mismatch


@lru_cache(256)
def planned(qo_lens, num_qo_heads, num_kv_heads, head_dim):
    """The query tile that FlashInfer's fa2 planner takes."""
    wrapper = BatchPrefillWithPagedKVCacheWrapper(torch.empty(256 << 20, dtype=torch.uint8), backend="fa2")
    pages = list(range(1, len(qo_lens) + 1))
    indptr = torch.tensor([0, *accumulate(1 for _ in qo_lens)], dtype=torch.int32)
    wrapper.plan(
        torch.tensor([0, *accumulate(qo_lens)], dtype=torch.int32),
        indptr,
        torch.tensor(pages, dtype=torch.int32),
        torch.full((len(qo_lens),), 512, dtype=torch.int32),
        num_qo_heads,
        num_kv_heads,
        head_dim,
        512,
        causal=True,
    )
    return wrapper.plan_info.q_tile


def check(inputs, got, want):
    """A tile that the planner would not take; only where FlashInfer has kernels for the head size."""
    if inputs["head_dim"] not in (64, 128, 256) or not sum(inputs["qo_lens"]):
        return []
    tile = planned(
        tuple(inputs["qo_lens"]), *(inputs[k] for k in ("num_qo_heads", "num_kv_heads", "head_dim"))
    )
    if got["tile"] != tile:
        return [Mismatch("value", "plan_info.q_tile", {"expected": tile, "got": str(got["tile"])[:20]})]
    return []
