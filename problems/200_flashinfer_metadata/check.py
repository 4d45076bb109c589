"""What the checker derives from an answer to problem 200: it plans and runs its own fake wrapper with it, on a pool of
its own, and compares with the engine's torch backend given the same requests."""

from itertools import pairwise

import torch
from flashinfer import BatchPrefillWithPagedKVCacheWrapper

from judge.evidence import (
    HEAD_DIM,
    KV_HEADS,
    QO_HEADS,
    Request,
    paged_cache,
    queries,
    reference_attention,
    run_kernel,
)

NAMES = {
    "q": "qo_indptr",  # as many query rows as the batch has; what does not fit is the plan
    "paged_kv_indptr": "kv_indptr",
    "paged_kv_indices": "kv_indices",
    "paged_kv_last_page_len": "kv_last_page_len",
}


def check(inputs, got, want):
    if not all(isinstance(got.get(name), torch.Tensor) for name in want):
        return []
    requests = [Request(*r) for r in inputs["reqs"]]
    table, page_size = inputs["page_table"], inputs["page_size"]

    def use():
        wrapper = BatchPrefillWithPagedKVCacheWrapper(
            torch.empty(1 << 25, dtype=torch.uint8), "NHD", backend="fa2"
        )
        wrapper.plan(
            got["qo_indptr"],
            got["kv_indptr"],
            got["kv_indices"],
            got["kv_last_page_len"],
            QO_HEADS,
            KV_HEADS,
            HEAD_DIM,
            page_size,
            causal=True,
            q_data_type=torch.float32,
        )
        return wrapper.run(queries(sum(r.extend_len for r in requests)), paged_cache(table, page_size))

    return run_kernel(use, reference_attention(requests, table), NAMES)


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    bs = len(inputs["reqs"])
    for name in ("qo_indptr", "kv_indptr"):
        indptr = got[name].tolist()
        if len(indptr) != bs + 1:
            yield {"zh": f"{name} 应有 B+1 个元素（B 是请求数）", "en": f"{name} must have B+1 entries"}
        if not indptr or indptr[0] != 0:
            yield {"zh": f"{name} 应从 0 开始", "en": f"{name} must begin with 0"}
        if any(a > b for a, b in pairwise(indptr)):
            yield {"zh": f"{name} 不能递减", "en": f"{name} must not decrease"}
    if got["kv_indptr"].tolist()[-1:] != [len(got["kv_indices"])]:
        yield {
            "zh": "kv_indptr 的最后一个元素应等于 kv_indices 的长度",
            "en": "the last entry of kv_indptr must be the length of kv_indices",
        }
    if any(not 1 <= n <= inputs["page_size"] for n in got["kv_last_page_len"].tolist()):
        yield {
            "zh": "kv_last_page_len 的每个元素应在 1 到 page_size 之间",
            "en": "every entry of kv_last_page_len must be between 1 and page_size",
        }
