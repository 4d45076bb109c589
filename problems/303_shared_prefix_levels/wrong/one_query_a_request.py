from itertools import accumulate

import torch


def i32(values):
    return torch.tensor(values, dtype=torch.int32)


def split_levels(pages, kv_lens, qo_lens, page_size):
    # A request keeps at least its last token for itself: a level without KV has nothing to merge.
    most = min((n - 1) // page_size for n in kv_lens)
    shared = 0
    while shared < most and len({row[shared] for row in pages}) == 1:
        shared += 1
    rest = [row[shared : -(-n // page_size)] for row, n in zip(pages, kv_lens)]
    return (
        i32([0, len(qo_lens)]),
        i32([0, shared]),
        i32(pages[0][:shared]),
        i32([page_size if shared else 0]),
        i32([0, *accumulate(qo_lens)]),
        i32([0, *accumulate(len(row) for row in rest)]),
        i32([page for row in rest for page in row]),
        i32([(n - 1) % page_size + 1 for n in kv_lens]),
    )
