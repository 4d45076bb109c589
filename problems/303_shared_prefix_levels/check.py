"""What the checker derives from an answer to problem 303: it runs its own fake cascade wrapper with the two levels, and
one paged wrapper over whole requests, and holds them against each other."""

from itertools import accumulate

import torch
from flashinfer import BatchPrefillWithPagedKVCacheWrapper, MultiLevelCascadeAttentionWrapper

from judge.evidence import run_kernel

HEADS, KV_HEADS, HEAD_DIM = 2, 1, 16
NAMES = {
    f"{argument}[{level}]": f"{name}_{level}"
    for level in (0, 1)
    for argument, name in (
        ("qo_indptr_arr", "qo_indptr"),
        ("paged_kv_indptr_arr", "kv_indptr"),
        ("paged_kv_indices_arr", "kv_indices"),
        ("paged_kv_last_page_len", "last_page_len"),
    )
}


def noise(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(inputs, q, cache):
    """Attention of the batch without levels."""
    size = inputs["page_size"]
    counts = [-(-n // size) for n in inputs["kv_lens"]]
    wrapper = BatchPrefillWithPagedKVCacheWrapper(torch.empty(64 << 20, dtype=torch.uint8), backend="fa2")
    wrapper.plan(
        torch.tensor([0, *accumulate(inputs["qo_lens"])], dtype=torch.int32),
        torch.tensor([0, *accumulate(counts)], dtype=torch.int32),
        torch.tensor(
            [p for row, n in zip(inputs["pages"], counts, strict=False) for p in row[:n]], dtype=torch.int32
        ),
        torch.tensor([(n - 1) % size + 1 for n in inputs["kv_lens"]], dtype=torch.int32),
        HEADS,
        KV_HEADS,
        HEAD_DIM,
        size,
        causal=True,
        q_data_type=torch.float32,
    )
    return wrapper.run(q, cache)


def check(inputs, got, want):
    if not all(isinstance(got.get(name), torch.Tensor) for name in want):
        return []
    size = inputs["page_size"]
    q = noise(1, sum(inputs["qo_lens"]), HEADS, HEAD_DIM)
    cache = noise(2, 1 + max(p for row in inputs["pages"] for p in row), 2, size, KV_HEADS, HEAD_DIM)

    def use():
        levels = [[got[f"{n}_{level}"] for level in (0, 1)] for n in LEVELS]
        wrapper = MultiLevelCascadeAttentionWrapper(2, torch.empty(64 << 20, dtype=torch.uint8))
        options = {"causal": True, "q_data_type": torch.float32}
        wrapper.plan(*levels, HEADS, KV_HEADS, HEAD_DIM, size, **options)
        return wrapper.run(q, cache)

    return run_kernel(use, whole(inputs, q, cache), NAMES, tolerance=1e-4)  # two states were merged


LEVELS = ("qo_indptr", "kv_indptr", "kv_indices", "last_page_len")
