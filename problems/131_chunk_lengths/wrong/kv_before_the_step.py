def chunk_lengths(chunks):
    positions, kv_lens, sample_rows = [], [], []
    for prompt_len, start, count in chunks:
        end = start + count
        positions += range(start, end)
        kv_lens.append(start)
        if end == prompt_len:
            sample_rows.append(len(positions) - 1)
    return positions, kv_lens, sample_rows
