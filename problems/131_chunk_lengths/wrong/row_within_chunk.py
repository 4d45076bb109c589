def chunk_lengths(chunks):
    positions, kv_lens, sample_rows = [], [], []
    for prompt_len, start, count in chunks:
        positions += range(start, start + count)
        kv_lens.append(start + count)
        if start + count == prompt_len:
            sample_rows.append(count - 1)
    return positions, kv_lens, sample_rows
