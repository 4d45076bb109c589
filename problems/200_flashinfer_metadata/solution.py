import torch


def flashinfer_metadata(reqs, page_table, page_size):
    qo_lens, page_counts, last_page_lens, pages = [], [], [], []
    for row, extend_len, seq_len in reqs:
        num_pages = (seq_len + page_size - 1) // page_size
        qo_lens.append(extend_len)
        page_counts.append(num_pages)
        last_page_lens.append(seq_len - (num_pages - 1) * page_size)
        # The first token of every page stands at a multiple of page_size, in the sequence and in the pool.
        pages.append(page_table[row, :seq_len:page_size] // page_size)
    return (
        indptr(qo_lens),
        indptr(page_counts),
        torch.cat(pages),
        torch.tensor(last_page_lens, dtype=torch.int32),
    )


def indptr(lengths):
    return torch.tensor([0, *lengths], dtype=torch.int32).cumsum_(0)
