"""What the checker derives from an answer to problem 203: it calls its own fake FlashAttention with it, and compares with the
engine's torch backend given the same requests."""

from itertools import pairwise

import torch
from sgl_kernel.flash_attn import flash_attn_with_kvcache

from judge.evidence import Request, paged_cache, queries, reference_attention, run_kernel

NAMES = {
    "q": "cu_seqlens_q",  # as many query rows as the batch has
    "page_table": "page_numbers",
    "cache_seqlens": "cache_seqlens",
    "cu_seqlens_q": "cu_seqlens_q",
    "max_seqlen_q": "max_seqlen_q",
}


def check(inputs, got, want):
    tensors = ("page_numbers", "cache_seqlens", "cu_seqlens_q")
    if not all(isinstance(got.get(name), torch.Tensor) for name in tensors):
        return []
    if type(got.get("max_seqlen_q")) is not int:
        return []
    requests = [Request(*r) for r in inputs["reqs"]]
    table = inputs["page_table"]
    k_cache, v_cache = paged_cache(table, inputs["page_size"])

    def use():
        return flash_attn_with_kvcache(
            queries(sum(r.extend_len for r in requests)),
            k_cache,
            v_cache,
            page_table=got["page_numbers"],
            cache_seqlens=got["cache_seqlens"],
            cu_seqlens_q=got["cu_seqlens_q"],
            max_seqlen_q=got["max_seqlen_q"],
            causal=True,
        )

    return run_kernel(use, reference_attention(requests, table), NAMES)


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    indptr = got["cu_seqlens_q"].tolist()
    if not indptr or indptr[0] != 0:
        yield {"zh": "cu_seqlens_q 应从 0 开始", "en": "cu_seqlens_q must begin with 0"}
    if any(a > b for a, b in pairwise(indptr)):
        yield {"zh": "cu_seqlens_q 不能递减", "en": "cu_seqlens_q must not decrease"}
    if int(got["page_numbers"].max()) * inputs["page_size"] > int(inputs["page_table"].max()):
        yield {"zh": "有页号超出了池子", "en": "a page number is beyond the pool"}
