"""What the checker derives from an answer to problem 204: it plans and runs its own fake prefill wrapper with it, the pool
seen as pages of one token, and compares with the engine's torch backend."""

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

NAMES = {"q": "qo_indptr", "qo_indptr": "qo_indptr"}


def check(inputs, got, want):
    if not isinstance(got.get("qo_indptr"), torch.Tensor):
        return []
    reqs = inputs["reqs"]
    width = max(device_len for _, device_len in reqs)
    table = torch.arange(len(reqs) * width, dtype=torch.int32).view(len(reqs), width)
    requests = [Request(row, kv - cached, kv) for row, (cached, kv) in enumerate(reqs)]

    def use():
        wrapper = BatchPrefillWithPagedKVCacheWrapper(
            torch.empty(1 << 22, dtype=torch.uint8), "NHD", backend="fa2"
        )
        wrapper.plan(
            got["qo_indptr"],
            inputs["kv_indptr"],
            torch.cat([table[row, :kv] for row, (_, kv) in enumerate(reqs)]),
            torch.ones(len(reqs), dtype=torch.int32),
            QO_HEADS,
            KV_HEADS,
            HEAD_DIM,
            1,
            causal=True,
            q_data_type=torch.float32,
        )
        return wrapper.run(queries(sum(r.extend_len for r in requests)), paged_cache(table, 1))

    return run_kernel(use, reference_attention(requests, table), NAMES)


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    indptr = got["qo_indptr"].tolist()
    if len(indptr) != len(inputs["reqs"]) + 1:
        yield {"zh": "qo_indptr 应有 B+1 个元素", "en": "qo_indptr must have B+1 entries"}
    if not indptr or indptr[0] != 0:
        yield {"zh": "qo_indptr 应从 0 开始", "en": "qo_indptr must begin with 0"}
    if any(a >= b for a, b in pairwise(indptr)):
        yield {"zh": "每个请求至少有一行 query", "en": "every request has at least one query row"}
    if indptr and indptr[-1] != sum(kv - cached for cached, kv in inputs["reqs"]):
        yield {
            "zh": "qo_indptr 的最后一个元素应等于本轮的 token 总数",
            "en": "the last entry of qo_indptr must be the number of tokens in this step",
        }
