"""What the checker derives from an answer to problem 201: it plans and runs its own fake wrapper of the chosen kind
with the metadata, as the backend would, and compares with the engine's torch backend."""

from itertools import pairwise

import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper

from judge.core.verdict import Mismatch
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
    "q": "cu_seqlens_q_cpu",  # as many query rows as the batch has; what does not fit is the plan
    "qo_indptr": "cu_seqlens_q_cpu",
    "indptr": "cu_seqlens_k_cpu",
    "paged_kv_indptr": "cu_seqlens_k_cpu",
    "indices": "indices",
    "paged_kv_indices": "indices",
    "last_page_len": "last_page_len_cpu",
    "paged_kv_last_page_len": "last_page_len_cpu",
    "seq_lens": "seq_lens_cpu",
}
TENSORS = ("cu_seqlens_q_cpu", "cu_seqlens_k_cpu", "indices", "last_page_len_cpu", "seq_lens_cpu")


def check(inputs, got, want):
    found = use_metadata(inputs, inputs, got)
    if not found and isinstance(got.get("next"), dict):
        found = [
            Mismatch(m.code, "next", m.params) for m in use_metadata(inputs, inputs["next"], got["next"])
        ]
    return found


def use_metadata(inputs, batch, got):
    if not all(isinstance(got.get(name), torch.Tensor) for name in TENSORS):
        return []
    table = inputs["page_table"]
    requests = [
        Request(row, kv_len - cached_len, kv_len)
        for row, cached_len, kv_len in batch["reqs"] + batch["padding"]
    ]
    q = queries(sum(r.extend_len for r in requests))
    workspace = torch.empty(1 << 25, dtype=torch.uint8)
    shared = {
        "num_qo_heads": QO_HEADS,
        "num_kv_heads": KV_HEADS,
        "page_size": 1,
        "seq_lens": got["seq_lens_cpu"],
        "q_data_type": torch.float32,
        "kv_data_type": torch.float32,
    }

    def use():
        if got.get("wrapper") == "decode":
            wrapper = BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
            wrapper.plan(
                indptr=got["cu_seqlens_k_cpu"],
                indices=got["indices"],
                last_page_len=got["last_page_len_cpu"],
                head_dim=HEAD_DIM,
                **shared,
            )
        else:
            wrapper = BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend="fa2")
            wrapper.plan(
                qo_indptr=got["cu_seqlens_q_cpu"],
                paged_kv_indptr=got["cu_seqlens_k_cpu"],
                paged_kv_indices=got["indices"],
                paged_kv_last_page_len=got["last_page_len_cpu"],
                head_dim_qk=HEAD_DIM,
                causal=True,
                **shared,
            )
        return wrapper.run(q, paged_cache(table, 1))

    return run_kernel(use, reference_attention(requests, table), NAMES)


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    bs = len(inputs["reqs"]) + len(inputs["padding"])
    for name in ("cu_seqlens_q_cpu", "cu_seqlens_k_cpu"):
        indptr = got[name].tolist()
        if len(indptr) != bs + 1:
            yield {
                "zh": f"{name} 应有 B+1 个元素（B 是填充后的请求数）",
                "en": f"{name} must have B+1 entries (B counts padding)",
            }
        if not indptr or indptr[0] != 0:
            yield {"zh": f"{name} 应从 0 开始", "en": f"{name} must begin with 0"}
        if any(a > b for a, b in pairwise(indptr)):
            yield {"zh": f"{name} 不能递减", "en": f"{name} must not decrease"}
    if got["cu_seqlens_k_cpu"].tolist()[-1:] != [len(got["indices"])]:
        yield {
            "zh": "cu_seqlens_k_cpu 的最后一个元素应等于 indices 的长度",
            "en": "the last entry of cu_seqlens_k_cpu must be the length of indices",
        }
    if any(n != 1 for n in got["last_page_len_cpu"].tolist()):
        yield {
            "zh": "一页一个 token 时 last_page_len_cpu 恒为 1",
            "en": "with pages of one token last_page_len_cpu is all ones",
        }
