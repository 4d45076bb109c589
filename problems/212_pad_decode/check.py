"""What the checker derives from an answer to problem 212: it plans and runs its own fake decode wrapper with it, and looks
at the real requests' attention."""

import torch
from flashinfer import BatchDecodeWithPagedKVCacheWrapper

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

PAGE_SIZE, PAGES = 4, 32
NAMES = {"q": "indptr", "indptr": "indptr", "indices": "indices", "last_page_len": "last_page_len"}


def check(inputs, got, want):
    if not all(isinstance(got.get(name), torch.Tensor) for name in want):
        return []
    indptr, pages = inputs["indptr"].tolist(), inputs["indices"].tolist()
    lengths = inputs["last_page_len"].tolist()
    table = torch.zeros(len(lengths) + 1, PAGES * PAGE_SIZE, dtype=torch.int32)
    requests = []
    for row, last in enumerate(lengths):
        mine = pages[indptr[row] : indptr[row + 1]]
        places = torch.tensor([p * PAGE_SIZE + slot for p in mine for slot in range(PAGE_SIZE)])
        table[row, : len(places)] = places
        requests.append(Request(row, 1, (len(mine) - 1) * PAGE_SIZE + last))
    table[-1, -1] = PAGES * PAGE_SIZE - 1  # the pool has all pages, whichever are in use

    def use():
        wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 22, dtype=torch.uint8), "NHD")
        wrapper.plan(
            got["indptr"],
            got["indices"],
            got["last_page_len"],
            QO_HEADS,
            KV_HEADS,
            HEAD_DIM,
            PAGE_SIZE,
            q_data_type=torch.float32,
        )
        q = torch.zeros(inputs["size"], QO_HEADS, HEAD_DIM)
        q[: len(lengths)] = queries(len(lengths))
        return wrapper.run(q, paged_cache(table, PAGE_SIZE))[: len(lengths)]

    return run_kernel(use, reference_attention(requests, table), NAMES)


def invariants(inputs, got):
    """Rules that every right answer keeps, and this one breaks."""
    if got["last_page_len"].numel() and int(got["last_page_len"].min()) < 1:
        yield {"zh": "last_page_len 的每个元素至少是 1", "en": "every entry of last_page_len is at least 1"}
    indptr = got["indptr"]
    if len(indptr) == inputs["size"] + 1 and bool((indptr[1:] <= indptr[:-1]).any()):
        yield {"zh": "每个请求至少要有一页", "en": "every request has at least one page"}
