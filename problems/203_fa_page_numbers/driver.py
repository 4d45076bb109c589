"""Runs problem 203. What stands behind a request's last page is never read, so it is made 0."""

import torch


def run(submission, inputs):
    reqs, page_size = inputs["reqs"], inputs["page_size"]
    given = ([tuple(r) for r in reqs], inputs["page_table"].clone(), page_size)
    page_numbers, cache_seqlens, cu_seqlens_q, max_seqlen_q = submission.flash_metadata(*given)
    if isinstance(page_numbers, torch.Tensor) and page_numbers.ndim == 2 and len(page_numbers) == len(reqs):
        page_numbers = page_numbers.clone()
        for line, (_, _, seq_len) in zip(page_numbers, reqs, strict=True):
            line[-(-seq_len // page_size) :] = 0
    return {
        "page_numbers": page_numbers,
        "cache_seqlens": cache_seqlens,
        "cu_seqlens_q": cu_seqlens_q,
        "max_seqlen_q": max_seqlen_q,
    }
