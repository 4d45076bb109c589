def chunk_lengths(chunks):
    positions, kv_lens, sample_rows = [], [], []
    for prompt_len, start, count in chunks:
        number = len(kv_lens)
        end = start + count
        positions += range(start, end)
        kv_lens.append(end)
        if end == prompt_len:
            sample_rows.append(number)
    return positions, kv_lens, sample_rows
