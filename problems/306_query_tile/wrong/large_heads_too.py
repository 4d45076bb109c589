def query_tile(qo_lens, num_qo_heads, num_kv_heads, head_dim):
    group = num_qo_heads // num_kv_heads
    packed = [n * group for n in qo_lens]
    average = sum(packed) // len(packed)
    tile = 128 if average > 64 else 64 if average > 16 else 16
    return tile, [-(-n // tile) for n in packed]
