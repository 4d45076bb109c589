"""What the checker derives from an answer to problem 300: it plans and runs its own fake decode wrapper with it."""

import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper

from judge.evidence import HEAD_DIM, KV_HEADS, QO_HEADS, queries, run_kernel

NAMES = {"indptr": "indptr", "indices": "indices", "last_page_len": "indptr"}


def decode(inputs, indptr, indices):
    """Attention of one query a request: float32 [B, heads, head_dim]."""
    size, lens = inputs["page_size"], inputs["seq_lens"]
    pages = int(inputs["block_table"].max()) + 1
    cache = torch.randn(2, pages, size, KV_HEADS, HEAD_DIM, generator=torch.Generator().manual_seed(3))
    last = torch.tensor([(n - 1) % size + 1 if n else 0 for n in lens], dtype=torch.int32)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(64 << 20, dtype=torch.uint8))
    sizes = (QO_HEADS, KV_HEADS, HEAD_DIM, size)
    wrapper.plan(indptr, indices, last, *sizes, q_data_type=torch.float32)
    return wrapper.run(queries(len(lens)), tuple(cache))


def check(inputs, got, want):
    if not all(isinstance(got.get(name), torch.Tensor) for name in want):
        return []
    expected = decode(inputs, want["indptr"], want["indices"])
    return run_kernel(lambda: decode(inputs, got["indptr"], got["indices"]), expected, NAMES)
