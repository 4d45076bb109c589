import torch


def flash_metadata(reqs, page_table, page_size):
    rows = [row for row, _, _ in reqs]
    query_lens = [extend_len for _, extend_len, _ in reqs]
    kv_lens = [seq_len for _, _, seq_len in reqs]
    first_positions = page_table[rows, : max(kv_lens)]
    cu_seqlens_q = torch.zeros(len(reqs) + 1, dtype=torch.int32)
    cu_seqlens_q[1:] = torch.tensor(query_lens, dtype=torch.int32).cumsum(0)
    cache_seqlens = torch.tensor(kv_lens, dtype=torch.int32)
    return (
        first_positions[:, : -(-max(kv_lens) // page_size)] // page_size,
        cache_seqlens,
        cu_seqlens_q,
        max(query_lens),
    )
