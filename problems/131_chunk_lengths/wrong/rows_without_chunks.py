def chunk_lengths(chunks):
    positions, kv_lens, sample_rows, rows = [], [], [], 0
    for prompt_len, start, count in chunks:
        end = start + count
        positions += range(start, end)
        kv_lens.append(end)
        if end == prompt_len:
            rows += count
            sample_rows.append(rows - 1)
    return positions, kv_lens, sample_rows
